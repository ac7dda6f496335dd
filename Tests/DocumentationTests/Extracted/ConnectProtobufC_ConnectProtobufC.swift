// Extracted from Sources/ConnectProtobufC/ConnectProtobufC.docc/ConnectProtobufC.md by `make generate`.

import Connect
import ConnectProtobufC
import ProtobufCExamples
import ProtobufCStubs

typealias SearchRequest = Connect__Test__V1__LookupRequest

private func ConnectProtobufC_ConnectProtobufC_1() async throws {
  let client: ProtocolClient = given()
  let search = Connect__Test__V1__TestServiceClient.Methods.lookup
  var request = CMessage<SearchRequest>()  // a struct that protoc-c made
  try request.update { fields, arena in fields.key = try arena.string("ada") }
  let response = try await client.unary(search, request).get()
  print(response.value)
  _ = client
  _ = search
  _ = request
  _ = response
}
