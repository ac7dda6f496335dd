// Extracted from Sources/ConnectReflection/ConnectReflection.docc/ConnectReflection.md by `make generate`.

import Connect
import ConnectProtobufC
import ConnectReflection
import NIOCore

private func ConnectReflection_ConnectReflection_1() async throws {
  let client: ProtocolClient = given()
  let reflection = ReflectionClient(client)  // any protocol of the client, also over HTTP/1.1
  let names = try await reflection.serviceNames()
  let files = try await reflection.files(containing: ["acme.v1.Users"])
  let get = try files.descriptorPool().method("/acme.v1.Users/Get")

  var request = DynamicMessage(get.input)
  try request.set("name", to: "ada")
  let answer = try await client.unary(get.spec, request).get()
  _ = client
  _ = reflection
  _ = names
  _ = files
  _ = get
  _ = request
  _ = answer
}

private func ConnectReflection_ConnectReflection_2() async throws {
  let bytes: ByteBuffer = given()
  // Of protoc --include_imports --include_source_info --descriptor_set_out=FILE
  let set = try ProtoFileSet(serializedFileDescriptorSet: bytes)
  let compiled = try await ProtoFileSet.compile(["acme/v1/users.proto"], importPaths: ["protos"])
  // Proto source with comments; json(of:) for the descriptor.
  print(try compiled.source(of: "acme.v1.Users/Get"))
  _ = bytes
  _ = set
  _ = compiled
}
