internal import Connect
internal import NIOCore

/// The body of a request on its way to the server.
struct InMemoryRequestBody {
  /// Pieces that the server has not yet taken.
  private var pieces = CircularBuffer<(bytes: ByteBuffer, time: Duration)>()
  /// When the client has sent the last piece that the server took, or the end that the server saw.
  private(set) var lastChunkTime: Duration
  private var finishTime: Duration
  private var unreadBytes = 0
  private(set) var isComplete = false
  /// Whether the client waits to hear that it may write more.
  private var owesWritable = false
  private var reader: ExecutorWait<ByteBuffer?>?

  init(_ body: HTTPStreamRequest.Body, at time: Duration) {
    self.lastChunkTime = time
    self.finishTime = time
    guard case .complete(let bytes) = body else { return }
    self.isComplete = true
    if bytes.readableBytes > 0 { self.pieces.append((bytes, time)) }
    self.unreadBytes = bytes.readableBytes
  }

  // MARK: The client's side

  mutating func append(_ bytes: ByteBuffer, at time: Duration) {
    self.owesWritable = true
    if let reader = self.reader.take() {
      self.lastChunkTime = time
      reader.resume(returning: bytes)
    } else {
      self.pieces.append((bytes, time))
      self.unreadBytes += bytes.readableBytes
    }
  }

  mutating func finish(at time: Duration) {
    self.isComplete = true
    self.finishTime = time
    if let reader = self.reader.take() {
      self.lastChunkTime = time
      reader.resume(returning: nil)
    }
  }

  /// Whether the client is to hear that it may write more, which it is told once.
  mutating func takeWritable(window: Int) -> Bool {
    guard self.owesWritable, self.unreadBytes <= window else { return false }
    self.owesWritable = false
    return true
  }

  // MARK: The server's side

  mutating func takePiece() -> ByteBuffer? {
    guard let (bytes, time) = self.pieces.popFirst() else { return nil }
    self.lastChunkTime = time
    self.unreadBytes -= bytes.readableBytes
    return bytes
  }

  mutating func takeEnd() -> Bool {
    if self.isComplete { self.lastChunkTime = self.finishTime }
    return self.isComplete
  }

  var isAwaited: Bool { self.reader != nil }

  /// The next piece, or the end, is for this wait.
  mutating func wait(_ reader: ExecutorWait<ByteBuffer?>) { self.reader = reader }

  mutating func forget(_ id: ObjectIdentifier) {
    if let reader = self.reader, ObjectIdentifier(reader) == id { self.reader = nil }
  }

  mutating func interrupt(_ error: ConnectError) { self.reader.take()?.resume(throwing: error) }

  mutating func removeAll() { self.pieces.removeAll() }
}
