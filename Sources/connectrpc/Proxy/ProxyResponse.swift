import Connect
import NIOCore
import NIOHTTP1

/// Writes the response of a request to its client.
///
/// Confined to the channel's event loop.
final class ProxyResponse {
  /// Headers that are about a connection, not about the response. The length needs no header, and the length of a recorded
  /// response may have changed.
  static let connectionHeaders: Set<String> = [
    "connection", "content-length", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]

  private let context: ChannelHandlerContext
  private let isHTTP2: Bool
  private let isKeepAlive: Bool
  private(set) var hasHead = false
  private var pendingWrites = 0
  private var resetCode: UInt32?
  private var isOver = false

  init(_ context: ChannelHandlerContext, isHTTP2: Bool, isKeepAlive: Bool) {
    self.context = context
    self.isHTTP2 = isHTTP2
    self.isKeepAlive = isHTTP2 || isKeepAlive
  }

  func send(_ head: Connect.HTTPResponseHead) {
    self.hasHead = true
    var headers = HTTPHeaders()
    for field in head.headers where !Self.connectionHeaders.contains(field.name) {
      headers.add(name: field.name, value: field.value)
    }
    if !self.isKeepAlive { headers.add(name: "connection", value: "close") }
    let status = HTTPResponseStatus(statusCode: head.status)
    self.context.write(
      Self.part(.head(.init(version: .http1_1, status: status, headers: headers))),
      promise: nil
    )
    self.context.flush()
  }

  /// - Parameter sent: Called when the bytes have gone to the socket; not if the client has gone before.
  func send(_ bytes: ByteBuffer, _ sent: @escaping () -> Void) {
    self.write(.body(.byteBuffer(bytes)), sent)
  }

  /// - Parameters:
  ///   - isRequestComplete: Whether the request has ended. If not, it is cut off.
  ///   - sent: Called when the whole response has gone to the socket.
  func end(_ trailers: Headers, isRequestComplete: Bool, _ sent: @escaping () -> Void) {
    let fields = HTTPHeaders(trailers.map { ($0.name, $0.value) })
    self.write(.end(fields.isEmpty ? nil : fields)) {
      if self.isHTTP2 {
        // NO_ERROR: RFC 9113, section 8.1.
        if !isRequestComplete { self.reset(code: 0) }
      } else if !isRequestComplete || !self.isKeepAlive {
        self.context.close(promise: nil)
      }
      sent()
    }
  }

  /// Resets the response, after pending writes.
  ///
  /// - Parameter code: The HTTP/2 error code.
  func reset(code: UInt32) {
    self.resetCode = code
    self.resetIfDone()
  }

  private func resetIfDone() {
    guard let code = self.resetCode, self.pendingWrites == 0, !self.isOver else { return }
    self.isOver = true
    if self.isHTTP2 {
      self.context.triggerUserOutboundEvent(HTTP2ResponseHandler.Reset(code: code), promise: nil)
    } else {
      self.context.close(promise: nil)
    }
  }

  private func write(_ part: HTTPServerResponsePart, _ sent: @escaping () -> Void) {
    let promise = self.context.eventLoop.makePromise(of: Void.self)
    self.pendingWrites += 1
    promise.futureResult.assumeIsolated().whenComplete { result in
      self.pendingWrites -= 1
      if case .success = result { sent() }
      self.resetIfDone()
    }
    self.context.writeAndFlush(Self.part(part), promise: promise)
  }

  private static func part(_ part: HTTPServerResponsePart) -> NIOAny { ProxyHandler.wrapOutboundOut(part) }
}
