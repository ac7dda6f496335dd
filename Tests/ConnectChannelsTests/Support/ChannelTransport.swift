import Connect
import ConnectChannels

/// Leads the calls of a `ProtocolClient` to one channel.
struct ChannelTransport: HTTPClientInterface {
  let channel: OriginChannel

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    self.channel
  }
}
