/// A method without its message types, as the `Metadata` of stubs has it.
public struct MethodSpec: Equatable, Codable, Sendable {
  /// As in the proto file, for example `Say`.
  public let name: String
  /// The full name of the service, for example `connectrpc.eliza.v1.ElizaService`.
  public let service: String
  public let type: MethodType

  /// How many messages flow in each direction.
  public enum MethodType: Equatable, Codable, Sendable {
    case unary
    case clientStream
    case serverStream
    case bidirectionalStream
  }

  /// Without a slash in front: `connectrpc.eliza.v1.ElizaService/Say`.
  public var path: String { "\(self.service)/\(self.name)" }

  public init(name: String, service: String, type: MethodType) {
    self.name = name
    self.service = service
    self.type = type
  }
}
