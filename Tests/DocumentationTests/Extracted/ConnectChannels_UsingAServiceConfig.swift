// Extracted from Sources/ConnectChannels/ConnectChannels.docc/UsingAServiceConfig.md by `make generate`.

import ConnectChannels
import ConnectNIO

private func ConnectChannels_UsingAServiceConfig_1() async throws {
  var configuration = NIOHTTPClient.Configuration.defaults
  configuration.channel.serviceConfig = try ServiceConfig(
    json: #"""
      { "methodConfig": [
          { "name": [{ "service": "pkg.Service" }], "timeout": "2s", "waitForReady": true,
            "retryPolicy": { "maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
              "retryableStatusCodes": ["UNAVAILABLE"] } }
        ],
        "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 } }
      """#
  )
  _ = configuration
}

private func ConnectChannels_UsingAServiceConfig_2() async throws {
  let servers = PushResolver()
  servers.update(
    [Endpoint("10.0.0.1:8080")].compactMap { $0 },
    serviceConfig: #"{ "loadBalancingConfig": [{ "round_robin": {} }] }"#
  )
  _ = servers
}
