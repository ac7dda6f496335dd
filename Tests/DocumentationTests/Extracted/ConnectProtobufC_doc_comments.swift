// Extracted from the doc comments of Sources/ConnectProtobufC by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func CMessage_Bytes_1() async throws {
    let checksum = message.withBytes(\.data) { bytes in
      bytes.byteOffsets.reduce(into: 0) { $0 ^= bytes.unsafeLoad(fromByteOffset: $1, as: UInt8.self) }
    }
    _ = checksum
  }

  private func CMessage_1() async throws {
    var request = CMessage<Acme__V1__GetRequest>()
    try request.update { fields, arena in
      fields.id = 5
      fields.name = try arena.string("ada")
    }
    let response = try await client.unary(method, request).get()
    print(response.user?.name ?? "")
    _ = request
    _ = response
  }

  private func DescriptorPool_1() async throws {
    let pool = try DescriptorPool(serializedFileDescriptorSet: bytes)
    let method = try pool.method("/acme.v1.Users/Get")
    var request = DynamicMessage(method.input)
    try request.set("name", to: "ada")
    let response = await client.unary(method.spec, request)
    _ = pool
    _ = method
    _ = request
    _ = response
  }
}
