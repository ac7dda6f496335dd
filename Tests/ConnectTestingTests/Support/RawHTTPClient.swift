import Connect
import ConnectTesting
import NIOCore
import Synchronization

/// A plain HTTP client, for requests that none of this package's clients makes.
struct RawHTTPClient {
  struct Response {
    var status = 0
    var headers = Headers()
    var body = ""
    var trailers = Headers()
  }

  private let transport: InMemoryTransport

  init(_ transport: InMemoryTransport) {
    self.transport = transport
  }

  func post(_ path: String, headers: Headers, body: ByteBuffer = ByteBuffer()) async throws -> Response {
    try await self.send(
      HTTPStreamRequest(method: .post, target: path, headers: headers, body: .complete(body))
    )
  }

  func get(_ target: String) async throws -> Response {
    try await self.send(
      HTTPStreamRequest(method: .get, target: target, headers: [:], body: .complete(ByteBuffer()))
    )
  }

  private func send(_ request: HTTPStreamRequest) async throws -> Response {
    let results = CallbackResults<Response>()
    let origin = Origin(scheme: .http, host: "memory", port: 80)
    let endpoint = try self.transport.endpoint(for: origin, on: nil, requiresHTTP2: false)
    endpoint.executor.execute {
      _ = endpoint.startStream(request, handler: Handler(results))
    }
    return try await results.next(1)[0]
  }

  private final class Handler: HTTPStreamHandler {
    private let results: CallbackResults<Response>
    private var response = Response()

    init(_ results: CallbackResults<Response>) {
      self.results = results
    }

    func streamDidStart(on connection: HTTPConnectionInfo) {}
    func streamDidBecomeWritable() {}

    func streamDidReceive(_ head: HTTPResponseHead) {
      self.response.status = head.status
      self.response.headers = head.headers
    }

    func streamDidReceive(_ bytes: ByteBuffer) {
      self.response.body += String(buffer: bytes)
    }

    func streamDidEnd(trailers: Headers) {
      self.response.trailers = trailers
      self.results.receive(self.response)
    }

    func streamDidFail(_ failure: HTTPStreamFailure) {
      self.results.receive(Response(status: -1))
    }
  }
}
