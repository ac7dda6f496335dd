internal import Connect
internal import NIOCore

/// The transport of a driver's call. It takes no notice of requests, and the driver sends the responses.
final class DriverTransport: HTTPClientInterface, HTTPEndpoint, TestDouble {
  typealias Start = @Sendable (any HTTPStreamHandler) -> any HTTPStream

  let executor: any CallExecutor
  private let start: Start

  /// - Parameter start: Makes the stream of an attempt. Called on the executor.
  init(_ executor: VirtualExecutor, _ start: @escaping Start = { DriverStream($0) {} }) {
    self.executor = executor
    self.start = start
  }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint { self }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.start(handler)
  }

  /// A client with what `config` says of limits, retries, time and logs.
  func client(_ config: ProtocolClientConfig) -> ProtocolClient {
    var own = ProtocolClientConfig(
      host: "https://interceptor.test",
      hookWarnings: .init(),
      logger: config.logger
    )
    own.timeout = config.timeout
    own.limits = config.limits
    own.retries = config.retries
    own.contextPropagators = config.contextPropagators
    own.deadlineMargin = config.deadlineMargin
    return ProtocolClient(httpClient: self, config: own)
  }
}

/// A stream whose response, in the Connect protocol, consists of placeholders.
///
/// Confined to the driver's executor.
final class DriverStream: HTTPStream {
  private var handler: (any HTTPStreamHandler)?
  private let onCancel: () -> Void
  private(set) var hasHead = false

  init(_ handler: any HTTPStreamHandler, onCancel: @escaping () -> Void) {
    self.handler = handler
    self.onCancel = onCancel
  }

  /// Whether the response has not ended.
  var isOpen: Bool { self.handler != nil }

  /// Sends the head, then messages.
  func send() {
    if self.hasHead {
      self.handler?.streamDidReceive(ByteBuffer(repeating: 0, count: 5))
    } else {
      self.hasHead = true
      let headers: Headers = ["content-type": ["application/connect+proto"]]
      self.handler?.streamDidReceive(HTTPResponseHead(status: 200, headers: headers))
    }
  }

  /// Sends the end. In its place, sends the head if it was not sent before.
  func sendEnd() {
    guard self.hasHead, let handler = self.handler.take() else {
      self.send()
      self.handler = nil
      return
    }
    handler.streamDidReceive(ByteBuffer(bytes: [2, 0, 0, 0, 2] + Array("{}".utf8)))
    handler.streamDidEnd(trailers: Headers())
  }

  func write(_ bytes: ByteBuffer) {}

  func finish(trailers: Headers) {}

  func consume(_ count: Int) {}

  func cancel() {
    self.handler = nil
    self.onCancel()
  }
}

extension MethodSpec {
  /// The method of a driver's call. Bytes are coded as they are, and other messages as nothing.
  ///
  /// - Parameter decoded: The message that the next placeholder stands for.
  static func driver(_ streamType: StreamType, decoded: @escaping @Sendable () -> Output? = { nil }) -> Self {
    let failure = ConnectError(code: .internalError, message: "a driver has no message")
    let input = MessageCoding<Input>.Functions<BinaryCodingOptions>(
      encode: { message, _ in message as? ByteBuffer ?? ByteBuffer() },
      decode: { _, _ in throw failure }
    )
    let output = MessageCoding<Output>.Functions<BinaryCodingOptions>(
      encode: { _, _ in ByteBuffer() },
      decode: { bytes, _ in
        guard let message = bytes as? Output ?? decoded() else { throw failure }
        return message
      }
    )
    return MethodSpec(
      info: MethodInfo(path: InterceptorDriver.defaultPath, streamType: streamType),
      input: MessageCoding(binary: input, json: nil),
      output: MessageCoding(binary: output, json: nil)
    )
  }
}
