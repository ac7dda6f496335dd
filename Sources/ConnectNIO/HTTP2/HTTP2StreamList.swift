internal import CNghttp2

/// The streams that libnghttp2's session knows. The list holds one reference to each, which is that session's.
struct HTTP2StreamList {
  private var first: Unmanaged<HTTP2Stream>?
  private(set) var count = 0
  /// The stream that was found last; frames of a stream often come in a row.
  private var last: Unmanaged<HTTP2Stream>?

  /// Newest first.
  var all: [HTTP2Stream] {
    var streams: [HTTP2Stream] = []
    var next = self.first
    while let stream = next?.takeUnretainedValue() {
      streams.append(stream)
      next = stream.next
    }
    return streams
  }

  mutating func find(_ id: Int32, in session: NGHTTP2Session?) -> HTTP2Stream? {
    if let last = self.last?.takeUnretainedValue(), last.id == id { return last }
    guard let session, let pointer = nghttp2_session_get_stream_user_data(session.pointer, id) else {
      return nil
    }
    let reference = Unmanaged<HTTP2Stream>.fromOpaque(pointer)
    self.last = reference
    return reference.takeUnretainedValue()
  }

  mutating func insert(_ stream: HTTP2Stream) {
    let reference = Unmanaged.passRetained(stream)
    stream.next = self.first
    self.first?.takeUnretainedValue().previous = reference
    self.first = reference
    self.count += 1
  }

  mutating func remove(_ stream: HTTP2Stream) {
    guard !stream.isClosed else { return }
    stream.isClosed = true
    stream.next?.takeUnretainedValue().previous = stream.previous
    if let previous = stream.previous {
      previous.takeUnretainedValue().next = stream.next
    } else {
      self.first = stream.next
    }
    stream.next = nil
    stream.previous = nil
    stream.outbound.removeAll()
    self.count -= 1
    self.last = nil
    Unmanaged.passUnretained(stream).release()
  }

  /// Releasing a stream may run user code. So a connection in use holds the streams until this has returned.
  mutating func removeAll() {
    while let first = self.first?.takeUnretainedValue() { self.remove(first) }
  }
}
