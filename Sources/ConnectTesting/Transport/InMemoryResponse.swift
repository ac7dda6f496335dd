package import Connect
package import NIOCore

/// The response of an ``InMemoryStream`` on its way to the call.
package struct InMemoryResponse {
  package enum Part {
    case head(HTTPResponseHead)
    case body(ByteBuffer)
    case end(trailers: Headers)

    var isBody: Bool { if case .body = self { true } else { false } }
  }

  /// A part with the wait of its sender, and what to call when the part was taken or dropped.
  typealias Item = (part: Part, sent: ExecutorWait<Void>?, onSent: (@Sendable () -> Void)?)

  private enum Progress {
    case nothing, head, end
  }

  private let window: Int
  private var items = CircularBuffer<Item>()
  private var progress = Progress.nothing
  /// Bytes given to the call that it has not consumed.
  private var unconsumedBytes = 0

  init(window: Int) {
    self.window = window
  }

  /// Notes that a part is on its way.
  ///
  /// - Throws: ``ConnectError`` if the part is out of order.
  mutating func advance(with part: Part) throws(ConnectError) {
    switch (part, self.progress) {
    case (.head, .nothing): self.progress = .head
    case (.body, .head): break
    case (.end, .head): self.progress = .end
    case (.head, _): throw .misuse("the response's head was sent before")
    case (_, .nothing): throw .misuse("the response's head was not sent")
    case (_, .end): throw .misuse("the response has ended")
    }
  }

  mutating func append(_ item: Item) { self.items.append(item) }

  mutating func consume(_ count: Int) { self.unconsumedBytes -= count }

  /// The next part, or the piece of it that the window has room for. The sender is told with the last piece.
  mutating func next() -> Item? {
    guard let first = self.items.first else { return nil }
    guard case .body(var rest) = first.part else { return self.items.removeFirst() }
    let room = self.window - self.unconsumedBytes
    guard room > 0, let piece = rest.readSlice(length: min(room, rest.readableBytes)) else { return nil }
    self.unconsumedBytes += piece.readableBytes
    self.items.removeFirst()
    guard rest.readableBytes > 0 else { return (.body(piece), first.sent, first.onSent) }
    self.items.prepend((.body(rest), first.sent, first.onSent))
    return (.body(piece), nil, nil)
  }

  /// Sending no longer waits.
  mutating func interrupt(_ error: ConnectError) {
    for index in self.items.indices { self.items[index].sent.take()?.resume(throwing: error) }
  }

  mutating func takeAll() -> CircularBuffer<Item> {
    defer { self.items.removeAll() }
    return self.items
  }
}
