internal import Connect
internal import ConnectChannels

extension Endpoint {
  /// The endpoint of an origin whose host is an address; nil if the host is a name that has to be resolved.
  init?(of origin: Origin) {
    switch origin.scheme {
    case .unix:
      self.init(.unix(path: origin.host))
    case .http, .https:
      guard let address = IPAddress(origin.host) else { return nil }
      self.init(.ip(address, port: origin.port))
    }
  }
}
