import ConnectProtobufC
import GreeterStructs

/// Greets people with structs of protoc-c.
public func greetingRequest(_ name: String) throws -> CMessage<Greeter__V1__GreetRequest> {
  var request = CMessage<Greeter__V1__GreetRequest>()
  try request.update { fields, arena in fields.name = try arena.string(name) }
  return request
}
