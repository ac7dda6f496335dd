/// A method without its message types, as the `Metadata` of stubs has it.
public struct MethodSpec: Equatable, Codable, Sendable {
  /// As in the proto file, for example `Say`.
  public let name: String
  /// The full name of the service, for example `connectrpc.eliza.v1.ElizaService`.
  public let service: String
  /// How many messages flow in each direction.
  public let type: MethodType

  /// The kinds of methods.
  public enum MethodType: Equatable, Codable, Sendable {
    /// One message each way.
    case unary
    /// Several messages from the client, one from the server.
    case clientStream
    /// One message from the client, several from the server.
    case serverStream
    /// Several messages each way.
    case bidirectionalStream
  }

  /// Without a slash in front: `connectrpc.eliza.v1.ElizaService/Say`.
  public var path: String { "\(self.service)/\(self.name)" }

  /// The method `name` of the service with the full name `service`.
  public init(name: String, service: String, type: MethodType) {
    self.name = name
    self.service = service
    self.type = type
  }
}
