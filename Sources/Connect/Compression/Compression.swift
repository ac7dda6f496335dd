/// What a client compresses, and what it accepts compressed.
public struct Compression: Sendable {
  /// How request messages are compressed; nil for not at all. A server that does not know the encoding fails the
  /// call with `unimplemented`.
  public var requests: (any CompressionPool)?
  /// Request messages of fewer bytes are sent as they are.
  public var minimumRequestBytes: Int
  /// The encodings that responses may be in, the preferred one first. They are announced with each request.
  public var responses: [any CompressionPool]

  /// Compression as given; where nothing is given, requests are sent as they are, the minimum is 1,024 bytes, and
  /// responses may be in gzip.
  public init(
    requests: (any CompressionPool)? = nil,
    minimumRequestBytes: Int = 1024,
    responses: [any CompressionPool] = [GzipCompressionPool()]
  ) {
    self.requests = requests
    self.minimumRequestBytes = minimumRequestBytes
    self.responses = responses
  }

  /// Requests are sent as they are, responses may be in gzip.
  public static var defaults: Compression { Compression() }
}

/// How one call's request messages are compressed.
public enum RequestCompression: Sendable {
  /// As the client's configuration says.
  case inherited
  /// The request's messages are not compressed.
  case none
  /// With this pool; the client's minimum size holds.
  case pool(any CompressionPool)
}
