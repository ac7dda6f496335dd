internal import Connect
internal import NIOCore
internal import XCTest

/// The events of one stream.
struct StreamRecord: Sendable {
  var info: HTTPConnectionInfo?
  var head: HTTPResponseHead?
  var body = ByteBuffer()
  var byteCount = 0
  var trailers: Headers?
  var failure: HTTPStreamFailure?

  var text: String { String(buffer: self.body) }

  /// Runs a stream to its end. Consumes bytes as they come, and keeps the first 64 KiB.
  static func run(_ request: HTTPStreamRequest, on endpoint: any HTTPEndpoint) async -> StreamRecord {
    await withCheckedContinuation { continuation in
      endpoint.executor.run {
        let handler = Handler { continuation.resume(returning: $0) }
        handler.stream = endpoint.startStream(request, handler: handler)
      }
    }
  }

  /// Runs a stream until the first bytes arrive, and cancels it then.
  static func cancel(_ request: HTTPStreamRequest, on endpoint: any HTTPEndpoint) async {
    await withCheckedContinuation { continuation in
      endpoint.executor.run {
        let handler = Handler { _ in XCTFail("the stream has ended") }
        handler.onBytes = { handler in
          handler.stream?.cancel()
          handler.onBytes = nil
          continuation.resume()
        }
        handler.stream = endpoint.startStream(request, handler: handler)
      }
    }
  }

  /// Confined to the endpoint's executor.
  private final class Handler: HTTPStreamHandler {
    var stream: (any HTTPStream)?
    var record = StreamRecord()
    var onBytes: ((Handler) -> Void)?
    private var onEnd: ((StreamRecord) -> Void)?

    init(_ onEnd: @escaping (StreamRecord) -> Void) { self.onEnd = onEnd }

    private func end() {
      XCTAssertNotNil(self.onEnd, "ended twice")
      self.stream = nil
      self.onEnd.take()?(self.record)
    }

    func streamDidStart(on connection: HTTPConnectionInfo) { self.record.info = connection }
    func streamDidBecomeWritable() {}
    func streamDidReceive(_ head: HTTPResponseHead) { self.record.head = head }

    func streamDidReceive(_ bytes: ByteBuffer) {
      self.record.byteCount += bytes.readableBytes
      if self.record.body.readableBytes < 64 << 10 { self.record.body.writeImmutableBuffer(bytes) }
      self.stream?.consume(bytes.readableBytes)
      self.onBytes?(self)
    }

    func streamDidEnd(trailers: Headers) {
      self.record.trailers = trailers
      self.end()
    }

    func streamDidFail(_ failure: HTTPStreamFailure) {
      self.record.failure = failure
      self.end()
    }
  }
}
