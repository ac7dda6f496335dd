import Connect
import ConnectTesting
import NIOCore
import NIOHTTP1

/// Forwards a request to the target, and its response back. Messages are not read.
///
/// Confined to the event loop of the client's channel, which is the target's executor, too.
final class ProxiedCall: HTTPStreamHandler {
  /// How many bytes of the request may wait for the target. A request of a known length up to this is forwarded as a whole, with
  /// its length: not all servers accept requests in chunks.
  private static let window = 65536

  private let head: HTTPRequestHead
  private let isHTTP2: Bool
  private let target: ProxyTarget
  private let response: ProxyResponse
  private let releaseRead: () -> Void
  private var stream: (any HTTPStream)?
  /// A request that is forwarded as a whole, until it is complete.
  private var whole: (request: HTTPStreamRequest, body: ByteBuffer)?
  private var unsentBytes = 0
  private var isRequestComplete = false
  private var isOver = false
  private var isReported = false

  /// - Parameter releaseRead: Called when ``isFull`` may be false again.
  init(
    _ head: HTTPRequestHead,
    isHTTP2: Bool,
    _ target: ProxyTarget,
    _ response: ProxyResponse,
    releaseRead: @escaping () -> Void
  ) {
    self.head = head
    self.isHTTP2 = isHTTP2
    self.target = target
    self.response = response
    self.releaseRead = releaseRead
  }

  // MARK: From the client

  /// Whether no more of the request is taken for now.
  var isFull: Bool { self.unsentBytes >= Self.window }

  func start() {
    guard let method = HTTPStreamRequest.Method(rawValue: self.head.method.rawValue),
      self.head.uri.hasPrefix("/")
    else {
      return self.head.uri.hasPrefix("/")
        ? self.refuse(status: 405, ["allow": ["GET, POST"]]) : self.refuse(status: 400)
    }
    var headers = Headers()
    for (name, value) in self.head.headers {
      let name = name.lowercased()
      if name == "host" || name == "expect" || ProxyResponse.connectionHeaders.contains(name) { continue }
      headers.add(name: name, value: value)
    }
    let request = HTTPStreamRequest(method: method, target: self.head.uri, headers: headers, body: .streamed)
    let length = self.head.headers.first(name: "content-length").flatMap { Int($0) }
    if method == .get || length.map({ $0 <= Self.window }) == true {
      self.whole = (request, ByteBuffer())
    } else {
      self.open(request)
    }
  }

  /// Answers in place of the target. The request does not count as a call.
  private func refuse(status: Int, _ headers: Headers = [:]) {
    self.isReported = true
    self.isOver = true
    self.whole = nil
    self.response.send(Connect.HTTPResponseHead(status: status, headers: headers))
    self.response.end([:], isRequestComplete: false) {}
  }

  private func open(_ request: HTTPStreamRequest) {
    do {
      self.stream = try self.target.start(request, self.isHTTP2, self)
    } catch {
      self.fail(error)
    }
  }

  func receive(_ bytes: ByteBuffer) {
    guard !self.isOver else { return }
    if let count = self.whole?.body.readableBytes {
      // Not all requests say their length.
      guard count + bytes.readableBytes <= Self.window else { return self.refuse(status: 413) }
      self.whole?.body.writeImmutableBuffer(bytes)
    } else {
      self.unsentBytes += bytes.readableBytes
      self.stream?.write(bytes)
    }
  }

  func finish(_ trailers: HTTPHeaders?) {
    self.isRequestComplete = true
    guard !self.isOver else { return }
    if let (request, body) = self.whole.take() {
      var request = request
      request.body = .complete(body)
      self.open(request)
    } else {
      let fields = (trailers ?? [:]).map { Headers.Field(name: $0.name.lowercased(), value: $0.value) }
      self.stream?.finish(trailers: Headers(fields))
    }
  }

  /// The client has gone away.
  func cancel() {
    self.isOver = true
    self.stream.take()?.cancel()
    self.report()
  }

  /// Tells the target once that the call is over. A request that has not begun does not count as a call.
  private func report() {
    guard !self.isReported, self.whole == nil else { return }
    self.isReported = true
    self.target.didEnd()
  }

  // MARK: From the target

  func streamDidStart(on connection: HTTPConnectionInfo) {}

  func streamDidBecomeWritable() {
    self.unsentBytes = 0
    self.releaseRead()
  }

  func streamDidReceive(_ head: Connect.HTTPResponseHead) { self.response.send(head) }

  func streamDidReceive(_ bytes: ByteBuffer) {
    let count = bytes.readableBytes
    self.response.send(bytes) { self.stream?.consume(count) }
  }

  func streamDidEnd(trailers: Headers) {
    self.close()
    self.response.end(trailers, isRequestComplete: self.isRequestComplete) { self.report() }
  }

  func streamDidFail(_ failure: HTTPStreamFailure) { self.fail(failure.error) }

  private func fail(_ error: ConnectError) {
    self.close()
    let contentType = self.head.headers.first(name: "content-type")
    guard !self.response.hasHead, let answer = try? ErrorResponse(error.shortened, to: contentType) else {
      self.response.reset(code: error.code.http2ErrorCode)
      return self.report()
    }
    self.response.send(Connect.HTTPResponseHead(status: answer.status, headers: answer.headers))
    if answer.body.readableBytes > 0 { self.response.send(answer.body) {} }
    self.response.end(answer.trailers, isRequestComplete: self.isRequestComplete) { self.report() }
  }

  /// Nothing more goes to the target. The rest of the request is read and dropped.
  private func close() {
    self.isOver = true
    self.stream = nil
    self.unsentBytes = 0
    self.releaseRead()
  }
}

extension ConnectError {
  /// The same error with a message that fits into a header. Percent-encoding may triple the message there, and clients
  /// accept 8 KiB of headers at least.
  fileprivate var shortened: ConnectError {
    let maximumSize = 2000
    guard let message = self.message, message.utf8.count > maximumSize else { return self }
    var error = self
    error.message = String(decoding: message.utf8.prefix(maximumSize), as: UTF8.self) + "…"
    return error
  }
}
