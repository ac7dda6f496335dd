// Extracted from Sources/ConnectProtobufC/ConnectProtobufC.docc/Messages.md by `make generate`.

import Connect
import ConnectProtobufC
import ProtobufCExamples
import ProtobufCStubs

private func ConnectProtobufC_Messages_1() async throws {
  let client: ProtocolClient = given()
  let service = Connect__Test__V1__TestServiceClient(client: client)

  var request = CMessage<Connect__Test__V1__LookupRequest>()
  try request.update { fields, arena in fields.key = try arena.string("ada") }
  let response = try await service.lookup(request)
  print(response.value)
  _ = client
  _ = service
  _ = request
  _ = response
}

private func ConnectProtobufC_Messages_2() async throws {
  let response: CMessage<Connect__Test__V1__Payload> = given()
  let size = response.withBytes(\.data) { (bytes: RawSpan) in bytes.byteCount }
  _ = response
  _ = size
}
