// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/RequestContext.md by `make generate`.

import Connect
import ConnectInterceptors

private func ConnectInterceptors_RequestContext_1() async throws {
  let headers: Headers = given()
  let request: String = given()
  let answer: @Sendable (String) async throws -> Void = given()
  try await CallContext.withValues {
    $0.read(requestHeaders: headers)
  } operation: {
    try await answer(request)
  }
  _ = headers
  _ = request
  _ = answer
}

private func ConnectInterceptors_RequestContext_2() async throws {
  let client: ProtocolClient = given()
  CallContext.$current.withValue(nil) {
    let eliza = Connectrpc_Eliza_V1_ElizaServiceClient(client: client)
    eliza.say(request: .with { $0.sentence = "Goodbye" }) { _ in }
  }
  _ = client
}

private func ConnectInterceptors_RequestContext_3() async throws {
  var options = CallOptions()
  options.context.requestID = "4711"
  options.context.baggage["tenant"] = "acme"
  _ = options
}
