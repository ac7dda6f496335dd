import Connect
import ConnectTesting
import Foundation
import XCTest

// The code of the guide "Find the bug in this interceptor".

/// The token that all calls show.
private actor LoginTokens {
  private(set) var token = "expired"
  private let fetch: @Sendable () async throws -> String

  init(fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  /// Returns the token to show in the place of one that the server has refused.
  func token(after refused: String) async throws -> String {
    // Another call was faster: its token is new.
    guard refused == self.token else { return self.token }
    self.token = try await self.fetch()
    return self.token
  }
}

private struct LoginTokenInterceptor: AsyncUnaryInterceptor {
  let tokens: any Tokens

  func interceptUnary<Input: Sendable, Output: Sendable>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    var request = request
    let token = await self.tokens.token
    request.headers["authorization"] = ["Bearer \(token)"]
    let response = try await next(request)
    guard response.code == .unauthenticated else { return response }
    let newToken = try await self.tokens.token(after: token)
    request.headers["authorization"] = ["Bearer \(newToken)"]
    return try await next(request)
  }
}

/// The token that all calls show.
private actor SharedLoginTokens {
  private(set) var token = "expired"
  private var running: Task<String, any Error>?
  private let fetch: @Sendable () async throws -> String

  init(fetch: @escaping @Sendable () async throws -> String) {
    self.fetch = fetch
  }

  /// Returns the token to show in the place of one that the server has refused.
  func token(after refused: String) async throws -> String {
    // Another call was faster: its token is new.
    guard refused == self.token else { return self.token }
    if let running = self.running { return try await running.value }
    let task = Task { try await self.fetch() }
    self.running = task
    defer { self.running = nil }
    self.token = try await task.value
    return self.token
  }
}

/// The guide has one interceptor for the tokens with the bug, and says what changes in them.
private protocol Tokens: Actor {
  var token: String { get }
  func token(after refused: String) async throws -> String
}

extension LoginTokens: Tokens {}
extension SharedLoginTokens: Tokens {}

/// What the guide says is what happens.
final class FindTheBugGuideTests: XCTestCase {
  private func explorer(
    _ makeTokens: @escaping @Sendable (_ fetch: @escaping @Sendable () async throws -> String) -> any Tokens
  ) -> InterceptorExplorer<Void> {
    InterceptorExplorer { world in
      let tokens = makeTokens {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject { _ in LoginTokenInterceptor(tokens: tokens) }
    }
    .calls(2)
    .server(
      .answering { attempt in
        attempt.headers["authorization"] == ["Bearer expired"] ? [.unauthenticated] : [.ok, .unavailable]
      }
    )
    .check("one refresh") { run in run.steps.count <= 1 }
    .quiet()
  }

  private static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "../../../Sources/ConnectTesting/ConnectTesting.docc/FindTheBug.md"
  )

  /// The blocks of the guide in a language.
  private func blocks(_ language: String) throws -> [String] {
    try String(contentsOf: Self.file, encoding: .utf8).components(separatedBy: "\n```")
      .filter { $0.hasPrefix("\(language)\n") }.map { String($0.dropFirst(language.count + 1)) }
  }

  /// Compares a block of text of the guide with what was printed. With `CONNECT_SESSIONS=record`, the guide gets what was printed.
  private func expectText(_ index: Int, _ printed: String) throws {
    let text = try XCTUnwrap(try self.blocks("text").dropFirst(index).first, "the guide has no text \(index)")
    if ProcessInfo.processInfo.environment["CONNECT_SESSIONS"] == "record" {
      let guide = try String(contentsOf: Self.file, encoding: .utf8)
      try guide.replacing("```text\n\(text)\n```", with: "```text\n\(printed)\n```")
        .write(to: Self.file, atomically: true, encoding: .utf8)
    } else {
      XCTAssertEqual(text, printed)
    }
  }

  func testTheExplorerFindsTheBugAsTheGuideSays() async throws {
    do {
      try await self.explorer { LoginTokens(fetch: $0) }.explore()
      XCTFail("no rule is broken")
    } catch let failure as ExplorationFailure {
      XCTAssertEqual(failure.rule, "one refresh")
      try self.expectText(0, failure.description)
    }
  }

  func testTheFixIsGreenAsTheGuideSays() async throws {
    let report = try await self.explorer { SharedLoginTokens(fetch: $0) }.allowing(.backgroundWork).explore()
    XCTAssertEqual(report.schedules, 1_000)
    try self.expectText(1, report.description)
  }

  /// The code here is that of the guide, but for what is private or makes one interceptor of two.
  func testTheGuideHasThisCode() throws {
    let source = try String(contentsOf: URL(filePath: #filePath), encoding: .utf8)
    let code = try self.blocks("swift").joined(separator: "\n")
    let lines = source.components(separatedBy: "\n/// The guide has one interceptor")[0].split(
      separator: "\n"
    )
    for line in lines.drop(while: { !$0.hasPrefix("/// The token") }) where !line.contains("any Tokens") {
      let line = line.hasPrefix("private ") ? line.dropFirst("private ".count) : line
      XCTAssertTrue(code.contains(line), "\(line)")
    }
  }
}
