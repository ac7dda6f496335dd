internal import Connect
internal import NIOCore

/// For logs: the message's JSON, or why it has none.
extension DynamicMessage: CustomStringConvertible {
  public var description: String {
    do {
      return String(buffer: try self.jsonBytes())
    } catch {
      return "\(self.descriptor.name) (\((error as? ConnectError)?.message ?? "\(error)"))"
    }
  }
}

/// For logs: the message's JSON, or why it has none. The type is not `CustomStringConvertible`, as a struct may have a
/// field named `description`.
extension CMessage: CustomDebugStringConvertible {
  public var debugDescription: String {
    do {
      return try self.dynamic().description
    } catch {
      return "\(Struct.messageType.name) (\((error as? ConnectError)?.message ?? "\(error)"))"
    }
  }
}
