// Extracted from Sources/ConnectProtobufC/ConnectProtobufC.docc/RunTimeTypes.md by `make generate`.

import Connect
import ConnectProtobufC
import NIOCore

private func ConnectProtobufC_RunTimeTypes_1() async throws {
  let client: ProtocolClient = given()
  let bytes: ByteBuffer = given()
  let pool = try DescriptorPool(serializedFileDescriptorSet: bytes)
  let get = try pool.method("/acme.v1.Users/Get")

  var message = DynamicMessage(get.input)
  try message.set("name", to: "ada")
  let answer = try await client.unary(get.spec, message).get()
  print(try answer.value(of: "id"))
  _ = client
  _ = bytes
  _ = pool
  _ = get
  _ = message
  _ = answer
}

private func ConnectProtobufC_RunTimeTypes_2() async throws {
  var message: DynamicMessage = given()
  try message.set("tags", to: ["a", "b"])
  try message.set("limits", to: ["daily": 5])
  try message.update("address") { address in
    try address.set("city", to: "London")
  }
  if try message.has("address") { try message.clear("address") }
  _ = message
}
