public import SwiftProtobuf

extension ConnectError {
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
