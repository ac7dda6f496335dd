import Connect
import ConnectTesting
import NIOCore
import Synchronization

/// A message for tests of interceptors, as JSON.
struct Note: Codable, Sendable, Equatable, CustomStringConvertible {
  var text: String

  init(_ text: String) { self.text = text }

  var description: String { self.text }

  static let post = MethodSpec<Note, Note>(codablePath: "/notes.v1.Notes/Post", streamType: .unary)
  static let chat = MethodSpec<Note, Note>(
    codablePath: "/notes.v1.Notes/Chat",
    streamType: .bidirectionalStream
  )
}

/// A transport whose server takes each attempt in turn: with an error, or, if there is none, by echoing what it was
/// sent. It speaks the Connect protocol with JSON.
///
/// Streams are confined to the executor.
final class NoteTransport: HTTPClientInterface, HTTPEndpoint {
  let virtualExecutor: VirtualExecutor
  /// The errors of the first attempts; later ones are answered.
  private let errors: Mutex<[Code]>
  private let requests = Mutex<[HTTPStreamRequest]>([])

  init(_ executor: VirtualExecutor, errors: [Code] = []) {
    self.virtualExecutor = executor
    self.errors = Mutex(errors)
  }

  var executor: any CallExecutor { self.virtualExecutor }

  /// All attempts so far.
  var attempts: [HTTPStreamRequest] { self.requests.withLock { $0 } }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    self
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.requests.withLock { $0.append(request) }
    let error = self.errors.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    let stream = NoteStream(self.virtualExecutor, handler, error)
    if case .complete(let body) = request.body {
      self.virtualExecutor.execute { stream.reply(to: body) }
    }
    return stream
  }

  /// A client of this transport.
  func client(_ interceptors: [InterceptorFactory], timeout: Duration? = nil) -> ProtocolClient {
    ProtocolClient(
      httpClient: self,
      config: ProtocolClientConfig(
        host: "https://notes.test",
        codec: JSONCodec(),
        interceptors: interceptors,
        timeout: timeout
      )
    )
  }
}

/// Confined to the executor.
private final class NoteStream: HTTPStream, @unchecked Sendable {
  private let executor: VirtualExecutor
  private var handler: (any HTTPStreamHandler)?
  private let error: Code?
  private var body = ByteBuffer()

  init(_ executor: VirtualExecutor, _ handler: any HTTPStreamHandler, _ error: Code?) {
    self.executor = executor
    self.handler = handler
    self.error = error
  }

  func reply(to message: ByteBuffer) {
    self.handler?.streamDidReceive(
      HTTPResponseHead(
        status: self.error == nil ? 200 : 500,
        headers: ["content-type": ["application/json"]]
      )
    )
    let error = self.error.map { ByteBuffer(string: #"{"code":"\#($0.name)","message":"sorry"}"#) }
    self.handler?.streamDidReceive(error ?? message)
    self.end()
  }

  private func replyToMessages() {
    self.handler?.streamDidReceive(
      HTTPResponseHead(status: 200, headers: ["content-type": ["application/connect+json"]])
    )
    let error = self.error.map { #""error":{"code":"\#($0.name)","message":"sorry"}"# } ?? ""
    var bytes = self.error == nil ? self.body : ByteBuffer()
    bytes.writeInteger(UInt8(2))
    bytes.writeInteger(UInt32(error.utf8.count + 2))
    bytes.writeString("{\(error)}")
    self.handler?.streamDidReceive(bytes)
    self.end()
  }

  private func end() {
    let handler = self.handler
    self.handler = nil
    handler?.streamDidEnd(trailers: Headers())
  }

  func write(_ bytes: ByteBuffer) {
    var bytes = bytes
    self.body.writeBuffer(&bytes)
    self.executor.execute { self.handler?.streamDidBecomeWritable() }
  }

  func finish(trailers: Headers) {
    self.executor.execute { self.replyToMessages() }
  }

  func consume(_ count: Int) {}

  func cancel() { self.handler = nil }
}
