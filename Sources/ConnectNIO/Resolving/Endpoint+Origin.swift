internal import Connect
internal import ConnectChannels

extension Endpoint {
  /// The endpoint of an origin whose host is an address; nil if the host is a name that has to be resolved.
  init?(of origin: Origin) {
    switch origin.scheme {
    case .unix:
      self.init(.unix(path: origin.host))
    case .unixAbstract:
      self.init(.unixAbstract(name: origin.host))
    case .vsock:
      guard let address = origin.vsockPort else { return nil }
      self.init(.vsock(cid: address.cid, port: address.port))
    case .http, .https:
      guard let address = IPAddress(origin.host) else { return nil }
      self.init(.ip(address, port: origin.port))
    }
  }
}
