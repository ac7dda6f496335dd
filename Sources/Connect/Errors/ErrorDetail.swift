public import NIOCore
public import SwiftProtobuf

extension ConnectError {
  /// A typed message that a server attached to an error: a fully qualified type name and the message's bytes.
  ///
  /// <https://connectrpc.com/docs/protocol#error-end-stream>, `google.protobuf.Any` in gRPC.
  public struct Detail: Sendable, Hashable {
    /// The fully qualified name, for example `google.rpc.RetryInfo`, without `type.googleapis.com/`.
    public var type: String
    /// The message in protobuf's binary encoding.
    public var value: ByteBuffer

    public init(type: String, value: ByteBuffer) {
      self.type = type
      self.value = value
    }
  }

  /// The details of type `M`, decoded. Details of other types, and bytes that do not decode, are left out.
  public func unpackedDetails<M: SwiftProtobuf.Message>(_ type: M.Type = M.self) -> [M] {
    self.details.compactMap { detail in
      guard detail.type == M.protoMessageName else { return nil }
      return try? ProtobufBytes.decode(M.self, from: detail.value)
    }
  }
}

extension ConnectError.Detail {
  /// Packs `message` as servers do. For tests and for fakes.
  public init(_ message: some SwiftProtobuf.Message) throws {
    self.type = Swift.type(of: message).protoMessageName
    self.value = try ProtobufBytes.encode(message, deterministic: true)
  }
}
