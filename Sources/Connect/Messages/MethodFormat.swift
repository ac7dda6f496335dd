/// How the messages of a method, or of one call, go over the wire, where it differs from the client's codec.
///
/// ```swift
/// config.methodFormats = { method in
///   method.service == "reports.v1.ReportService" ? MethodFormat(codec: JSONCodec()) : nil
/// }
/// ```
public struct MethodFormat: Sendable {
  /// The encoding of messages; nil for the client's. The content type that is sent, and the one that is expected in
  /// responses, follow from its name.
  public var codec: (any Codec)?
  /// Makes messages of responses in place of the codec; nil for none.
  public var responseParser: ResponseParser?

  /// A format; what is left out is as in the client's configuration.
  public init(codec: (any Codec)? = nil, responseParser: ResponseParser? = nil) {
    self.codec = codec
    self.responseParser = responseParser
  }
}
