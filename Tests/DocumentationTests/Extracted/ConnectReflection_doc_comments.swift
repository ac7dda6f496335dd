// Extracted from the doc comments of Sources/ConnectReflection by `make generate`.

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
  private func ReflectionClient_1() async throws {
    let reflection = ReflectionClient(client)
    let files = try await reflection.files(containing: ["acme.v1.Users"])
    let get = try files.descriptorPool().method("/acme.v1.Users/Get")
    var request = DynamicMessage(get.input)
    try request.set("name", to: "ada")
    let answer = try await client.unary(get.spec, request).get()
    _ = reflection
    _ = files
    _ = get
    _ = request
    _ = answer
  }
}
