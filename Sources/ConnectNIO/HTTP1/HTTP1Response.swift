internal import Connect
internal import NIOHTTP1

/// How far a response is, where its body ends, and whether the connection may be used again behind it.
struct HTTP1Response {
  enum Progress {
    case awaitingHead
    case receivingBody
    /// All of it has arrived; the handler is told once the whole read has been looked at.
    case complete(trailers: Headers)
  }

  private(set) var progress = Progress.awaitingHead
  /// What the response's head said, and what came behind it, decides this.
  var allowsReuse = true
  /// How much of the response's body has yet to come, in bytes, if its head said how long it is.
  var missingLength: Int?
  /// Whether the end of the connection is the end of the body.
  private(set) var endsWithConnection = false
  private var isChunked = false

  var awaitsHead: Bool {
    if case .awaitingHead = self.progress { true } else { false }
  }

  /// Whether a body follows that is chunked.
  var receivesChunks: Bool {
    if case .receivingBody = self.progress { self.isChunked } else { false }
  }

  /// Whether `count` bytes that have come from the peer may be of this response.
  mutating func accepts(_ count: Int) -> Bool {
    if case .complete = self.progress {
      // More than was asked for. The response that is complete still counts.
      self.allowsReuse = false
      return false
    }
    if let missing = self.missingLength, count > missing { self.allowsReuse = false }
    return true
  }

  /// Checks, once the decoder has seen a piece, that a head or body that ended in the piece ended with the piece. If
  /// not, the decoder may hold the beginning of something that nobody asked for.
  ///
  /// - Parameters:
  ///   - isHead: Whether the piece was to be of a head.
  ///   - endsWithBlankLine: Whether its last bytes were a blank line, which ends heads and chunked bodies.
  mutating func didDecode(isHead: Bool, endsWithBlankLine: Bool) {
    guard !endsWithBlankLine else { return }
    switch self.progress {
    case .awaitingHead: break
    case .receivingBody: if isHead { self.allowsReuse = false }
    case .complete: if isHead || self.missingLength != 0 { self.allowsReuse = false }
    }
  }

  /// - Throws: ``ConnectError`` if the head is too large, or not one that may answer a request of ours.
  mutating func begin(
    _ head: NIOHTTP1.HTTPResponseHead,
    headerListLimit: Int,
    peer: String
  ) throws(ConnectError) {
    guard head.status.code != 101 else {
      throw .invalidHTTP1(peer, "it switched protocols without being asked")
    }
    try Self.checkSize(of: head.headers, limit: headerListLimit)
    switch HTTP1Messages.framing(of: head) {
    case .length(let length): self.missingLength = length
    case .chunked: self.isChunked = true
    case .untilClose: self.endsWithConnection = true
    case .unclear(let reason): throw .invalidHTTP1(peer, reason)
    }
    self.progress = .receivingBody
    self.allowsReuse = head.isKeepAlive && !self.endsWithConnection
  }

  /// - Throws: ``ConnectError`` if the trailers are too large.
  mutating func complete(_ trailers: HTTPHeaders?, headerListLimit: Int) throws(ConnectError) {
    try Self.checkSize(of: trailers, limit: headerListLimit)
    self.progress = .complete(trailers: HTTP1Messages.headers(trailers))
  }

  private static func checkSize(of headers: HTTPHeaders?, limit: Int) throws(ConnectError) {
    let size = HTTP1Messages.size(of: headers)
    guard size > limit else { return }
    throw HTTPStreamFailure.headerListTooLarge(size: size, limit: limit).error
  }
}
