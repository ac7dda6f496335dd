import Connect
import ConnectProtobufC
import LoopbackServer
import ProtobufCExamples
import ProtobufCStubs
import SwiftProtobuf

/// One method, called through one client with messages of every family. The codec is JSON, as `Codable` types have no
/// binary encoding.
struct Families {
  let client: ProtocolClient
  let timeline: Timeline

  private var options: CallOptions {
    var options = CallOptions(timeout: .seconds(10))
    options.context[TimelineKey.self] = self.timeline
    options.context[ShowsTypesKey.self] = true
    return options
  }

  /// What protoc-gen-swift made of the proto file.
  func swiftProtobuf() async throws {
    let service = Connect_Test_V1_TestServiceClient(client: self.client)
    let response = try await service.echo(.with { $0.payload.text = "from Swift" }, options: self.options)
    try self.expect("from Swift", response.payload.text)
  }

  /// protoc-c's struct, filled as C code would, and read in place.
  func structOfC() async throws {
    let service = Connect__Test__V1__TestServiceClient(client: self.client)
    var request = CMessage<Connect__Test__V1__EchoRequest>()
    try request.update { fields, arena in
      fields.payload = try arena.message { (payload: inout Connect__Test__V1__Payload) in
        payload.text = try arena.string("from C")
      }
    }
    let response = try await service.echo(request, options: self.options)
    try self.expect("from C", response.payload?.text)
  }

  /// A dynamic message: the method and its types are found by name in a descriptor set.
  func dynamic() async throws {
    let method = try connectTestV1TestDescriptors.pool().method("/connect.test.v1.TestService/Echo")
    var request = DynamicMessage(method.input)
    try request.update("payload") { try $0.set("text", to: "from a descriptor") }
    let response = try await self.client.unary(method.spec, request, options: self.options).get()
    guard case .message(let payload) = try response.value(of: "payload") else {
      throw DemoFailure("there is no payload")
    }
    try self.expect("from a descriptor", payload.value(of: "text"))
  }

  /// Plain Swift, without a generator.
  func codable() async throws {
    let echo = MethodSpec<PlainEcho, PlainEcho>(
      codablePath: "/connect.test.v1.TestService/Echo",
      streamType: .unary
    )
    let request = PlainEcho(payload: PlainEcho.Payload(text: "from a Codable type"))
    let response = try await self.client.unary(echo, request, options: self.options).get()
    try self.expect("from a Codable type", response.payload.text)
  }

  private func expect<Value: Equatable>(_ sent: Value, _ received: Value?) throws {
    guard received == sent else { throw DemoFailure("the echo is \(String(describing: received))") }
    self.timeline.note("caller", depth: 0, "got it back")
  }
}

/// The part of the service's messages that the demo needs.
struct PlainEcho: Codable, Sendable {
  struct Payload: Codable, Sendable {
    var text: String
  }

  var payload: Payload
}
