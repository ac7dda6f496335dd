import Connect
import ConnectTesting
import NIOCore
import Synchronization

/// A transport without sockets: a test's closure answers each stream.
///
/// Everything happens on a ``VirtualExecutor``.
final class ScriptedTransport: HTTPClientInterface, RuledEndpoint {
  typealias Script = @Sendable (ScriptedStream) -> Void

  let virtualExecutor: VirtualExecutor
  private let script: Script
  private let started = Mutex<[ScriptedStream]>([])
  let serviceRules = ServiceRules()
  /// The maximum number of calls that wait for rules.
  let maximumWaitingForRules = Box(Int.max)

  /// - Parameters:
  ///   - script: Called on the executor when a stream has started.
  ///   - executor: By default an executor that leaves async interceptors to the concurrency pool, as in production.
  init(_ script: @escaping Script, executor: VirtualExecutor = VirtualExecutor(runsTasks: false)) {
    self.virtualExecutor = executor
    self.script = script
  }

  var executor: any CallExecutor { self.virtualExecutor }

  func callsWaitForRules(_ count: Int) -> ConnectError? {
    count > self.maximumWaitingForRules.value
      ? ConnectError(code: .resourceExhausted, message: "too many") : nil
  }

  /// All streams so far, oldest first.
  var streams: [ScriptedStream] { self.started.withLock { $0 } }

  /// Releases all streams, which keep their requests' objects alive.
  func forgetStreams() {
    self.started.withLock { $0.removeAll() }
  }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    self
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = ScriptedStream(request: request, handler: handler, executor: self.virtualExecutor)
    self.started.withLock { $0.append(stream) }
    self.virtualExecutor.execute { [script] in
      stream.begin()
      script(stream)
    }
    return stream
  }
}

/// A stream of a ``ScriptedTransport``: the call's side, and the functions with which a script answers.
///
/// Confined to the executor, except for reads by a test after `runUntilIdle()`.
final class ScriptedStream: HTTPStream, @unchecked Sendable {
  let request: HTTPStreamRequest
  private let executor: VirtualExecutor
  /// Nil after the last event that the call receives. A test that kept the handler can break the rules of a transport.
  private(set) var handler: (any HTTPStreamHandler)?

  /// The operations of the call, in order: `write 8`, `finish`, `cancel`.
  private(set) var calls: [String] = []
  /// The body so far.
  private(set) var body = ByteBuffer()
  private(set) var isFinished = false
  private(set) var isCancelled = false
  /// Whether the call receives no more events: the stream has ended, has failed, or was cancelled.
  var isOver: Bool { self.handler == nil }
  /// Bytes delivered to the call that it has not consumed.
  private(set) var unconsumed = 0
  /// Whether written bytes are reported as sent immediately.
  var isWritable = true
  /// Called when the request has ended.
  var onFinish: (@Sendable (ScriptedStream) -> Void)?
  /// Called with each piece of the body.
  var onWrite: (@Sendable (ScriptedStream, ByteBuffer) -> Void)?

  init(request: HTTPStreamRequest, handler: any HTTPStreamHandler, executor: VirtualExecutor) {
    self.request = request
    self.handler = handler
    self.executor = executor
    if case .complete(let body) = request.body {
      self.body = body
      self.isFinished = true
    }
  }

  func begin() {
    self.handler?.streamDidStart(on: HTTPConnectionInfo(version: .http2, isReused: false))
  }

  // MARK: HTTPStream

  func write(_ bytes: ByteBuffer) {
    var bytes = bytes
    let copy = bytes
    self.calls.append("write \(bytes.readableBytes)")
    self.body.writeBuffer(&bytes)
    self.executor.execute {
      if self.isWritable { self.handler?.streamDidBecomeWritable() }
      self.onWrite?(self, copy)
    }
  }

  func finish(trailers: Headers) {
    self.isFinished = true
    self.calls.append("finish")
    self.executor.execute { self.onFinish?(self) }
  }

  func consume(_ count: Int) {
    self.unconsumed -= count
  }

  func cancel() {
    self.isCancelled = true
    self.calls.append("cancel")
    self.handler = nil
  }

  // MARK: For scripts

  func passTimeUnnoticed(_ duration: Duration) {
    self.executor.passUnnoticed(duration)
  }

  func becomeWritable() {
    self.isWritable = true
    self.handler?.streamDidBecomeWritable()
  }

  func respond(status: Int = 200, headers: Headers) {
    self.handler?.streamDidReceive(HTTPResponseHead(status: status, headers: headers))
  }

  func send(_ bytes: ByteBuffer) {
    guard self.handler != nil else { return }
    self.unconsumed += bytes.readableBytes
    self.handler?.streamDidReceive(bytes)
  }

  func end(trailers: Headers = Headers()) {
    let handler = self.handler
    self.handler = nil
    handler?.streamDidEnd(trailers: trailers)
  }

  func fail(_ error: ConnectError, isUnprocessed: Bool = false, isVersionMismatch: Bool = false) {
    var failure = HTTPStreamFailure(error: error, isUnprocessed: isUnprocessed)
    if isVersionMismatch { failure.isVersionMismatch = true }
    self.fail(failure)
  }

  func fail(_ failure: HTTPStreamFailure) {
    let handler = self.handler
    self.handler = nil
    handler?.streamDidFail(failure)
  }
}

// MARK: - The Connect protocol, as a server speaks it

extension ScriptedStream {
  /// A whole unary response.
  func reply(_ message: String, headers: Headers = Headers()) {
    var all: Headers = ["content-type": ["application/json"]]
    all.append(contentsOf: headers)
    self.respond(headers: all)
    self.send(ByteBuffer(string: message))
    self.end()
  }

  /// A whole unary error.
  func reply(_ code: Code, _ message: String = "scripted", status: Int = 500, headers: Headers = Headers()) {
    var all: Headers = ["content-type": ["application/json"]]
    all.append(contentsOf: headers)
    self.respond(status: status, headers: all)
    self.send(ByteBuffer(string: #"{"code":"\#(code.name)","message":"\#(message)"}"#))
    self.end()
  }

  /// The head of a stream's response.
  func respondStream(headers: Headers = Headers()) {
    var all: Headers = ["content-type": ["application/connect+json"]]
    all.append(contentsOf: headers)
    self.respond(headers: all)
  }

  /// A message of a stream.
  func sendMessage(_ message: String) {
    self.sendEnvelope(flags: 0, message)
  }

  /// The end of a stream.
  func endStream(_ code: Code? = nil, metadata: String = "{}") {
    let error = code.map { #""error":{"code":"\#($0.name)","message":"scripted"},"# } ?? ""
    self.sendEnvelope(flags: 2, "{\(error)\"metadata\":\(metadata)}")
    self.end()
  }

  private func sendEnvelope(flags: UInt8, _ message: String) {
    var buffer = ByteBuffer()
    buffer.writeInteger(flags)
    buffer.writeInteger(UInt32(message.utf8.count))
    buffer.writeString(message)
    self.send(buffer)
  }

  /// The messages of a stream's request so far.
  var sentMessages: [String] {
    var body = self.body
    var messages: [String] = []
    while let prefix = body.readBytes(length: 5) {
      let length = prefix[1...].reduce(0) { $0 << 8 | Int($1) }
      messages.append(body.readString(length: length) ?? "")
    }
    return messages
  }

  /// The message of a unary request.
  var sentMessage: String { String(buffer: self.body) }
}
