/// The names of the headers of the wire protocols.
public enum HeaderConstants {
  /// The compressions that a unary response may be in.
  public static let acceptEncoding = "accept-encoding"
  /// The compression of a unary message in the Connect protocol.
  public static let contentEncoding = "content-encoding"
  /// The protocol and the codec.
  public static let contentType = "content-type"

  /// The version of the Connect protocol.
  public static let connectProtocolVersion = "connect-protocol-version"
  /// The time limit of a call in the Connect protocol, in milliseconds.
  public static let connectTimeoutMs = "connect-timeout-ms"
  /// The compressions that a stream's response may be in, in the Connect protocol.
  public static let connectStreamingAcceptEncoding = "connect-accept-encoding"
  /// The compression of a stream's messages in the Connect protocol.
  public static let connectStreamingContentEncoding = "connect-content-encoding"
  /// Who makes the call, where `user-agent` cannot be set.
  public static let xUserAgent = "x-user-agent"

  /// The compressions that a response may be in, in gRPC.
  public static let grpcAcceptEncoding = "grpc-accept-encoding"
  /// The compression of messages in gRPC.
  public static let grpcContentEncoding = "grpc-encoding"
  /// An error's message in gRPC.
  public static let grpcMessage = "grpc-message"
  /// The outcome's number in gRPC.
  public static let grpcStatus = "grpc-status"
  /// An error with its details in gRPC, in protobuf's binary encoding and base64.
  public static let grpcStatusDetails = "grpc-status-details-bin"
  /// The time limit of a call in gRPC.
  public static let grpcTimeout = "grpc-timeout"
  /// Says that the client takes trailers, in gRPC.
  public static let grpcTE = "te"
}
