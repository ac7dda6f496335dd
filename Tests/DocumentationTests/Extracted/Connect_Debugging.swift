// Extracted from Sources/Connect/Connect.docc/Debugging.md by `make generate`.

import Connect
import ConnectInterceptors
import ConnectNIO
import Logging

private func Connect_Debugging_1() async throws {
  var logger = Logger(label: "rpc")
  logger.logLevel = .debug
  // Connections: opened, refused, closed, and why.
  let httpClient = NIOHTTPClient(logger: logger)
  let log = CallLog(logger: logger)
  let config = ProtocolClientConfig(
    host: "https://api.example.com",
    // Each call: its code, duration, attempts, bytes.
    interceptors: [{ LoggingInterceptor(log, config: $0) }],
    // Mistakes of interceptors: `proceed` called twice, hooks that block or hold a call up.
    logger: logger
  )
  _ = logger
  _ = httpClient
  _ = log
  _ = config
}

private func Connect_Debugging_2() async throws {
  let client: ProtocolClient = given()
  let request = Connectrpc_Eliza_V1_SayRequest()
  let explainer = CallExplainer()
  let say = Connectrpc_Eliza_V1_ElizaServiceClient.Methods.say
  _ = await client.unary(say, request, options: CallOptions().explained(by: explainer))
  print(explainer.explanation)
  _ = client
  _ = request
  _ = explainer
  _ = say
}
