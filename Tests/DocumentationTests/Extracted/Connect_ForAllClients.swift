// Extracted from Sources/Connect/Connect.docc/ForAllClients.md by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors

private func Connect_ForAllClients_1() async throws {
  let metrics = CallMetrics()
  try ClientSystem.bootstrap(
    interceptors: [{ MetricsInterceptor(metrics, config: $0) }],
    channelObserver: ChannelMetrics()
  )
  _ = metrics
}
