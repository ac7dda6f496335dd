/// How the size of headers, trailers and other metadata is counted and bounded. This applies to HTTP/1.1, to HTTP/2,
/// and to the body of a response (the end of a Connect stream, gRPC-Web's trailers).
public enum HeaderListSize {
  /// The largest list that is accepted by default, in bytes: 64 KiB. A response with a larger one fails its call
  /// with `resource_exhausted`, whose message has both figures.
  ///
  /// Transports make the limit configurable, and report it (``HTTPEndpoint/maximumHeaderListSize``). The same limit
  /// applies to metadata in bodies.
  public static let defaultLimit = 64 << 10

  /// What each field counts besides its name and value, in bytes (RFC 9113, section 6.5.2).
  public static let fieldOverhead = 32

  /// The size of `headers`, in bytes.
  public static func of(_ headers: Headers) -> Int {
    headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + self.fieldOverhead }
  }

  /// - Throws: ``ConnectError`` with `resource_exhausted` if metadata that came in a body are larger than `limit`.
  static func check(metadata: Headers, limit: Int) throws(ConnectError) {
    let size = self.of(metadata)
    guard size > limit else { return }
    throw ConnectError(
      code: .resourceExhausted,
      message:
        "received trailers of \(size) bytes, which is over the limit of \(limit) bytes (maxHeaderListSize)"
    )
  }
}
