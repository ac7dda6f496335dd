import Connect
import ConnectInterceptors
import Logging
import LoopbackServer
import NIOCore
import SwiftProtobuf
import Synchronization

/// A client as in a real service: with the recommended interceptors, an expired token, a server that is still starting,
/// and a cache.
struct Production {
  private static let token = "fresh-token"

  private let client: ProtocolClient
  private let server: LoopbackServer
  private let timeline: Timeline
  private let reference = ClientReference()

  init(server: LoopbackServer, httpClient: any HTTPClientInterface, timeline: Timeline) {
    self.server = server
    self.timeline = timeline
    var parts = ClientParts(
      logger: Logger(label: "calls") { _ in TimelineLogHandler(timeline: timeline) }
    )
    // No collector receives traces here.
    parts.isTraced = false
    // A cycle: the client needs the credentials, and the credentials fetch their token through the client.
    let reference = self.reference
    parts.credentials = Credentials(
      for: ["127.0.0.1"],
      token: AccessToken("old-token", expiresIn: .zero),
      configuration: .init(allowsCleartext: true)
    ) { refresh in
      timeline.note(
        "credentials",
        depth: 2,
        "▼ the token is \(refresh.reason): fetches another, once for all calls"
      )
      let service = Connect_Test_V1_TestServiceClient(client: try reference.get())
      let response = try await service.lookup(.with { $0.key = "token" })
      timeline.note("credentials", depth: 2, "▼ has it, through the same client")
      return AccessToken(response.value, expiresIn: .seconds(3600))
    }
    parts.cache = ResponseCache()
    parts.retryPolicy = RetryPolicy(backoff: Backoff(base: .milliseconds(20)))
    parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 100)
    self.client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        interceptors: [{ MessageLogger(config: $0) }] + .recommended(for: parts) + [
          { WireLogger(config: $0) }
        ]
      )
    )
    reference.set(self.client)
  }

  func run() async throws {
    defer { self.reference.set(nil) }
    self.answerLookups()
    let options = self.options
    let service = Connect_Test_V1_TestServiceClient(client: self.client)

    // Two concurrent calls need the token and share one fetch.
    self.timeline.note("caller", depth: 0, "Lookup(\"question\") and Lookup(\"answer\") at once")
    async let question = service.lookup(.with { $0.key = "question" }, options: options)
    let answer = try await service.lookup(.with { $0.key = "answer" }, options: options)
    let both = "\(try await question.value) is \(answer.value)"
    self.timeline.note("caller", depth: 0, "got \"\(both)\"")
    try expect(both == "6 times 9 is 42", "the answer is \(both)")

    self.timeline.note("caller", depth: 0, "Lookup(\"answer\") again")
    let again = await self.client.unary(TestMethods.lookup, .with { $0.key = "answer" }, options: options)
    let status = CacheStatus(again.headers).map { "\($0)" } ?? "no"
    self.timeline.note("caller", depth: 0, "got \"\(try again.get().value)\", a cache \(status)")
    try expect(status == "hit", "the cache has not answered")

    let lookups = self.server.requests.filter { $0.path == TestMethods.lookup.path }
    let logins = lookups.filter { $0.headers.first("authorization") == nil }.count
    let attempts = lookups.count - logins
    self.timeline.note(
      "caller",
      depth: 0,
      "the server saw \(logins) login and \(attempts) attempts at three calls"
    )
    try expect(logins == 1 && attempts == 3, "the server saw \(logins) logins and \(attempts) attempts")
  }

  /// Makes one more call, past the cache, and explains where its time went.
  func explain() async throws -> CallExplanation {
    let explainer = CallExplainer()
    var options = CallOptions(timeout: .seconds(10)).explained(by: explainer)
    options.context[CachePolicy.self] = .networkOnly
    _ = try await self.client.unary(TestMethods.lookup, .with { $0.key = "answer" }, options: options).get()
    return explainer.explanation
  }

  private var options: CallOptions {
    var options = CallOptions(timeout: .seconds(10))
    options.context[TimelineKey.self] = self.timeline
    return options
  }

  /// Makes the server require the token, and fail the first request for the answer as unavailable.
  private func answerLookups() {
    self.server.onRaw(TestMethods.lookup.path) { request, responder in
      let body = try await request.body()
      let key = try Connect_Test_V1_LookupRequest(serializedBytes: Array(body.readableBytesView)).key
      let headers = request.record.headers
      if key != "token", headers.first("authorization") != "Bearer \(Self.token)" {
        return try await responder.respond(status: 401, text: "who are you?")
      }
      if key == "answer", headers.first("grpc-previous-rpc-attempts") == nil {
        return try await responder.respond(status: 503, text: "not yet")
      }
      let values = ["token": Self.token, "answer": "42", "question": "6 times 9"]
      let response = Connect_Test_V1_LookupResponse.with { $0.value = values[key] ?? "" }
      try await responder.respond(
        headers: ["content-type": "application/proto"],
        body: ByteBuffer(bytes: try response.serializedBytes() as [UInt8])
      )
    }
  }
}

/// Breaks the cycle between a client and an object that the client needs and that needs the client.
private final class ClientReference: Sendable {
  private let client = Mutex<ProtocolClient?>(nil)

  func set(_ client: ProtocolClient?) { self.client.withLock { $0 = client } }

  func get() throws -> ProtocolClient {
    guard let client = self.client.withLock({ $0 }) else { throw DemoFailure("the client is gone") }
    return client
  }
}

/// Writes log lines into a timeline.
private struct TimelineLogHandler: LogHandler {
  let timeline: Timeline
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.debug

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let metadata = event.metadata ?? [:]
    let count = metadata["attempts"].map { "\($0)" }
    let attempts = count.map { $0 == "1" ? "1 attempt" : "\($0) attempts" } ?? "nothing on the wire"
    let id = metadata["request.id"].map { "request \("\($0)".prefix(8))…" } ?? "no request"
    self.timeline.note("log", depth: 2, "▲ \(event.message): \(id), \(attempts)")
  }
}
