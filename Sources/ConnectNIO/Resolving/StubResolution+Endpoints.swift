internal import ConnectChannels

extension StubResolution.Answer {
  /// - Parameter port: The port of hosts that bring none.
  func endpoints(port: Int) -> [Endpoint] {
    // The hosts come with the lowest priority first.
    guard let priority = self.hosts.first?.priority else { return [] }
    return self.hosts.prefix { $0.priority == priority }
      .flatMap { host in
        host.port == nil
          ? host.addresses.map { Endpoint(.ip($0, port: port)) } : host.targetEndpoints(port: port)
      }
      .withoutDuplicates()
  }
}

extension StubResolution.Answer.Host {
  /// The endpoints of a service's target.
  fileprivate func targetEndpoints(port: Int) -> [Endpoint] {
    let port = self.port ?? port
    let weight = UInt32(clamping: max(self.weight, 1))
    let isOneServer = Set(self.addresses.map(\.family)).count == self.addresses.count
    if isOneServer {
      return [Endpoint(addresses: self.addresses.map { .ip($0, port: port) }, weight: weight)]
    }
    let share = max(weight / UInt32(clamping: self.addresses.count), 1)
    return self.addresses.map { Endpoint(addresses: [.ip($0, port: port)], weight: share) }
  }
}
