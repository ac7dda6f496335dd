import Connect
import NIOCore
import Synchronization
import XCTest

@testable import ConnectTesting

/// What the explorer knows of messages and headers, wherever they are and however short they are.
final class ExplorerValuesTests: XCTestCase {
  // MARK: GET

  private func gets(_ factories: [InterceptorFactory]) -> InterceptorExplorer<Void> {
    InterceptorExplorer(of: factories)
      .calls(2)
      .idempotency(.noSideEffects)
      .configuration { $0.unaryGET = .alwaysEnabled }
      .check("all requests are GET") { run in
        run.attempts.allSatisfy { !$0.headers.contains("content-type") && $0.messages.count == 1 }
      }
  }

  func testMessagesInQueriesRaiseNoAlarm() async throws {
    try await self.gets([]).quiet().explore()
    try await self.gets([{ _ in PassingInterceptor() }, { _ in PassingAsyncInterceptor() }]).quiet().explore()
  }

  func testMessagesThatChangeInQueriesAreFound() async throws {
    let explorer = self.gets([
      { _ in HookedInterceptor { UnaryFunction(updateRequest: { $0.message = ByteBuffer() }) } }
    ])
    try await self.expect("messages arrive as they were sent", explorer)
    try await explorer.allowing(.changedMessages).quiet().explore()
  }

  // MARK: Short values

  private typealias Request = @Sendable (Int) -> (text: String, headers: Headers)

  private static let shortRequests: [Request] = [
    { ("\($0)", [:]) },
    { ("", ["x-user": ["\($0)"]]) },
    { ("", ["x-user": ["user number \($0)"], "x-empty": [""]]) },
    { (String(repeating: "a", count: $0), [:]) },
  ]

  func testHeadersOfAnotherCallAreFoundInShortRequests() async throws {
    for requests in Self.shortRequests {
      let explorer = InterceptorExplorer { _ in
        let shared = Mistakes.SharedHeaders()
        return Subject { _ in Mistakes.sharesHeaders(shared) }
      }
      try await self.expect("values stay in their call", explorer.calls(2).requests(requests))
    }
  }

  /// One header with a short value, without the explorer's own.
  func testAShortHeaderOfAnotherCallIsFound() async throws {
    let explorer = InterceptorExplorer { _ in
      let users = Mutex<[String]>([])
      return Subject { _ in
        HookedInterceptor {
          UnaryFunction(updateRequest: { request in
            let user = request.headers["x-user"]
            request.headers["x-user"] = users.withLock { users in
              if users.isEmpty { users = user }
              return users
            }
          })
        }
      }
    }
    try await self.expect(
      "values stay in their call",
      explorer.calls(2).requests { ("the same", ["x-user": ["\($0)"]]) }
    )
  }

  func testShortRequestsRaiseNoAlarm() async throws {
    for requests in Self.shortRequests {
      try await InterceptorExplorer(of: { _ in PassingInterceptor() })
        .calls(3)
        .methods([.unary, .bidirectionalStream])
        .requests(requests)
        .quiet()
        .explore()
    }
  }

  func testEqualRequestsHaveEqualCanaries() async throws {
    try await InterceptorExplorer(of: { _ in PassingInterceptor() })
      .calls(3)
      .requests { ("text", $0 == 2 ? ["x-user": ["2"]] : [:]) }
      .check("canaries") { run in
        run.calls.allSatisfy {
          $0.requestHeaders["x-canary"] == [$0.number == 2 ? "canary-2" : "canary-1"]
        }
      }
      .schedules(100)
      .quiet()
      .explore()
  }

  // MARK: Shared responses

  /// Sends the first request of all in the place of each later one.
  private func firstRequests(onlyHeaders: Bool) -> InterceptorExplorer<Void> {
    InterceptorExplorer { _ in
      let first = Mutex<HTTPRequest<ByteBuffer>?>(nil)
      return Subject { _ in
        HookedInterceptor {
          UnaryFunction(updateRequest: { request in
            let shared = first.withLock { first in
              first = first ?? request
              return first ?? request
            }
            request.headers = shared.headers
            if !onlyHeaders { request.message = shared.message }
          })
        }
      }
    }
    .calls(2)
  }

  func testSharedResponsesAllowRequestsOfOtherCalls() async throws {
    let explorer = self.firstRequests(onlyHeaders: false)
    try await self.expect("values stay in their call", explorer)
    try await explorer.allowing(.sharedResponses).quiet().explore()
  }

  /// A request is another call's as a whole, or not at all.
  func testSharedResponsesAllowNoMixture() async throws {
    try await self.expect(
      "messages arrive as they were sent",
      self.firstRequests(onlyHeaders: true).allowing(.sharedResponses)
    )
  }

  // MARK: Hedging

  /// Attempts at the same time: the last one that began does not always decide.
  func testHedgingRaisesNoAlarm() async throws {
    let report = try await InterceptorExplorer(of: [
      { _ in PassingInterceptor() }, { _ in PassingAsyncInterceptor() },
    ])
    .calls(2)
    .idempotency(.noSideEffects)
    .configuration { $0.hedging = { _ in HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(10)) } }
    .server(.answers(.ok, .permissionDenied, .unavailable, .headersThenNothing, .reset))
    .schedules(2_000)
    .quiet()
    .explore()
    XCTAssertGreaterThan(report.coverage["attempts"] ?? 0, 5_000)
  }

  /// With hedging, the caller may get the error of an earlier attempt.
  func testErrorsOfHedgesRaiseNoAlarm() async throws {
    try await InterceptorExplorer(of: { _ in HookedInterceptor.redactingErrors() })
      .idempotency(.noSideEffects)
      .configuration { $0.hedging = { _ in HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(10)) } }
      .server(.answers(.ok, .unavailable))
      .schedules(2_000).quiet()
      .explore()
  }

  /// A call whose own request has failed may get what another call has received in the meantime.
  func testSharedResponsesAfterAFailureRaiseNoAlarm() async throws {
    try await InterceptorExplorer { _ in
      let store = LastResponseInterceptor.Store()
      return Subject { _ in LastResponseInterceptor(store: store) }
    }
    .calls(2).requests { _ in ("the same", [:]) }
    .schedules(2_000).quiet()
    .explore()
  }

  /// Hedging does not hide that a good answer is lost.
  func testGoodAnswersAreNotLostInHedges() async throws {
    try await self.expect(
      "good answers are not lost",
      InterceptorExplorer(of: { _ in Mistakes.failsGoodAnswers() })
        .idempotency(.noSideEffects)
        .configuration { $0.hedging = { _ in HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(10)) } }
    )
  }

  // MARK: Long values

  func testPartsOfTexts() {
    XCTAssertTrue("canary-1-2".hasPart("y-1"))
    XCTAssertTrue("canary".hasPart(""))
    XCTAssertFalse("canary".hasPart("canary-1"))
    // Texts with zeros.
    XCTAssertTrue("a\0canary".hasPart("canary"))
    XCTAssertTrue("a\0canary".hasPart("a\0c"))
    XCTAssertFalse("acanary".hasPart("a\0c"))
    XCTAssertFalse("a\0canary".hasPart("ac"))
    // A quadratic search would take hours.
    let text = String(repeating: "a", count: 2_000_000)
    XCTAssertFalse(text.hasPart(String(repeating: "a", count: 1_000_000) + "b"))
    XCTAssertTrue((text + "b").hasPart(String(repeating: "a", count: 1_000_000) + "b"))
  }

  func testLongMessagesRaiseNoAlarm() async throws {
    let explorer = InterceptorExplorer(of: { _ in PassingInterceptor() })
      .calls(2).schedules(10).quiet()
      // Answers are no longer than this.
      .configuration { $0.limits.maximumReceivedMessageSize = 10_000 }
    try await explorer.requests { (String(repeating: "x", count: 100_000 / $0), [:]) }.explore()
    let text = String(repeating: "x", count: 1_100_000)
    let long = explorer.calls(1).schedules(2).requests { _ in (text, [:]) }
    try await long.methods([.serverStream]).explore()
    try await long.methods([.clientStream]).explore()
  }

  func testStoriesHaveTheBeginningsOfLongMessages() async throws {
    let explorer = InterceptorExplorer(of: { _ in PassingInterceptor() })
      .methods([.serverStream])
      .requests { _ in
        (String(repeating: "x", count: 5_000), ["x-long": [String(repeating: "y", count: 5_000)]])
      }
      .check("no") { _ in false }
    do {
      try await explorer.explore()
      XCTFail("nothing was found")
    } catch let failure as ExplorationFailure {
      XCTAssertTrue(failure.story.contains("“" + String(repeating: "x", count: 200) + "…”"), failure.story)
      XCTAssertTrue(
        failure.story.contains("x-long: " + String(repeating: "y", count: 200) + "…"),
        failure.story
      )
      XCTAssertLessThan(failure.story.utf8.count, 10_000)
    }
  }
}
