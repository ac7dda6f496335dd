public import NIOCore

extension ConnectError {
  /// A typed message that a server attached to an error: a fully qualified type name and the message's bytes.
  ///
  /// <https://connectrpc.com/docs/protocol#error-end-stream>, `google.protobuf.Any` in gRPC.
  public struct Detail: Sendable, Hashable {
    /// The fully qualified name, for example `google.rpc.RetryInfo`, without `type.googleapis.com/`.
    public var type: String
    /// The message in protobuf's binary encoding.
    public var value: ByteBuffer

    /// A detail with bytes that are already encoded.
    public init(type: String, value: ByteBuffer) {
      self.type = type
      self.value = value
    }
  }
}
