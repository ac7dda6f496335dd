internal import Connect
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
import XCTest

typealias Version = HTTPConnectionInfo.Version

extension Version {
  /// The versions that test servers speak without TLS.
  static let allCases = [Version.http1, .http2]

  var configuration: NIOHTTPClient.Configuration {
    NIOHTTPClient.Configuration(version: self == .http1 ? .http1Only : .http2Only)
  }
}

/// A server in this process for one test, and a client for it.
struct EmbeddedServer {
  let server: LoopbackServer
  let httpClient: NIOHTTPClient
  let client: ProtocolClient

  /// The outcome that the server records for an abandoned call: RST_STREAM(CANCEL), or the end of the connection.
  static func givenUp(_ version: Version) -> RequestRecord.Outcome {
    version == .http1 ? .connectionClosed : .resetByClient(8)
  }

  /// Starts a server, calls `body`, and stops the server and the client.
  @discardableResult
  static func run<Result>(
    _ version: Version,
    coding: Coding = .proto,
    server configuration: LoopbackServer.Configuration = .plaintext,
    interceptors: [InterceptorFactory] = [],
    configure: (inout NIOHTTPClient.Configuration, inout ProtocolClientConfig) -> Void = { _, _ in },
    _ body: (EmbeddedServer) async throws -> Result
  ) async throws -> Result {
    let server = try await LoopbackServer.start(configuration)
    var clientConfiguration = version.configuration
    var config = ProtocolClientConfig.forTests(host: server.url, coding: coding, interceptors: interceptors)
    configure(&clientConfiguration, &config)
    let httpClient = NIOHTTPClient(configuration: clientConfiguration)
    let embedded = EmbeddedServer(
      server: server,
      httpClient: httpClient,
      client: ProtocolClient(httpClient: httpClient, config: config)
    )
    do {
      let result = try await body(embedded)
      try await bounded("the client's shutdown") { await httpClient.shutdown(within: .seconds(10)) }
      await server.stop()
      return result
    } catch {
      await httpClient.shutdown(within: .zero)
      await server.stop()
      throw error
    }
  }
}

extension EmbeddedServer {
  /// Lets the client's event loop read its sockets: then it has seen everything that the server sent and closed before.
  func letClientReadItsSockets() async throws {
    let origin = Origin(scheme: .http, host: "127.0.0.1", port: self.server.port)
    let executor = try self.httpClient.endpoint(for: origin, on: nil, requiresHTTP2: false).executor
    // A timer runs only in a later turn of the loop, which begins by reading sockets. The additional turns let handlers
    // finish.
    for _ in 0..<3 {
      await withCheckedContinuation { continuation in
        executor.execute { _ = executor.schedule(after: .milliseconds(1)) { continuation.resume() } }
      }
    }
  }
}

/// Calls `body` with a client of `host` and shuts the client down.
@discardableResult
func withPlainClient<Result>(
  _ version: Version,
  host: String,
  configure: (inout NIOHTTPClient.Configuration, inout ProtocolClientConfig) -> Void = { _, _ in },
  _ body: (ProtocolClient) async throws -> Result
) async throws -> Result {
  var configuration = version.configuration
  var config = ProtocolClientConfig.forTests(host: host)
  configure(&configuration, &config)
  let httpClient = NIOHTTPClient(configuration: configuration)
  do {
    let result = try await body(ProtocolClient(httpClient: httpClient, config: config))
    try await bounded("the client's shutdown") { await httpClient.shutdown(within: .seconds(10)) }
    return result
  } catch {
    await httpClient.shutdown(within: .zero)
    throw error
  }
}

/// A unary method at a path that only this test uses.
func unaryMethod(_ path: String) -> MethodSpec<EchoRequest, EchoResponse> {
  MethodSpec(path: path, streamType: .unary)
}

/// A server-stream method at a path that only this test uses.
func streamMethod(_ path: String) -> MethodSpec<CountRequest, CountResponse> {
  MethodSpec(path: path, streamType: .serverStream)
}

/// An expected error, as failed tests print it.
struct ExpectedError {
  var code: Code
  /// The text that the message must contain.
  var text: String

  init(_ code: Code, _ text: String = "") {
    self.code = code
    self.text = text
  }

  func check(
    _ error: ConnectError?,
    _ what: String,
    file: StaticString = #filePath,
    line: UInt = #line
  ) {
    let message = error?.message ?? ""
    XCTAssertEqual(error?.code, self.code, "\(what): \(String(describing: error))", file: file, line: line)
    XCTAssertTrue(
      self.text.isEmpty || message.contains(self.text),
      "\(what): \(message)",
      file: file,
      line: line
    )
    XCTAssertFalse(message.isEmpty, "\(what): no message", file: file, line: line)
  }
}

extension ProtocolClient {
  /// Makes a unary call in both forms and expects the same error from both. The callback must run exactly once.
  @discardableResult
  func expectFailure(
    _ method: MethodSpec<EchoRequest, EchoResponse>,
    _ expected: ExpectedError,
    _ what: String,
    request: EchoRequest = EchoRequest(),
    options: CallOptions = CallOptions(),
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws -> ConnectError? {
    let responses = Recorder<ResponseMessage<EchoResponse>>()
    self.unary(method, request, options: options) { responses.record($0) }
    let first = try await responses.wait(for: 1, of: "responses (\(what))")[0]
    expected.check(first.error, "\(what), callback", file: file, line: line)
    let second = await self.unary(method, request, options: options)
    expected.check(second.error, "\(what), async", file: file, line: line)
    XCTAssertEqual(responses.values.count, 1, "\(what): completed more than once", file: file, line: line)
    return second.error
  }

  /// Makes a server-stream call in both forms. Expects this number of messages and then the same error from both.
  @discardableResult
  func expectStreamFailure(
    _ method: MethodSpec<CountRequest, CountResponse>,
    _ expected: ExpectedError,
    _ what: String,
    messages: Int = 0,
    request: CountRequest = CountRequest(),
    options: CallOptions = CallOptions(),
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws -> StreamOutcome<CountResponse> {
    let results = Recorder<StreamResult<CountResponse>>()
    self.serverStream(method, request, options: options) { results.record($0) }
    _ = try await results.outcome()
    let second = await self.serverStream(method, request, options: options).results.collect()
    for (outcome, form) in [(StreamOutcome(results.values), "callback"), (second, "async")] {
      expected.check(outcome.error, "\(what), \(form)", file: file, line: line)
      XCTAssertEqual(outcome.code, expected.code, "\(what), \(form): the ends", file: file, line: line)
      XCTAssertEqual(outcome.messages.count, messages, "\(what), \(form): messages", file: file, line: line)
    }
    return second
  }
}
