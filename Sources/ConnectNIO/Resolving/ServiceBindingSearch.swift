internal import Connect
internal import ConnectChannels

/// Resolvers that can look for HTTPS records beside the addresses.
protocol ServiceBindingResolver: NameResolver {
  /// The same resolver, which gives what HTTPS records say of HTTP/3 to `alternatives`.
  func looking(for alternatives: SharedAlternatives) -> any NameResolver
}

extension DNSResolver: ServiceBindingResolver {
  func looking(for alternatives: SharedAlternatives) -> any NameResolver {
    var copy = self
    copy.alternatives = alternatives
    return copy
  }
}

extension ChannelConfiguration {
  /// Has the resolver look for HTTPS records, if it can.
  mutating func look(for alternatives: SharedAlternatives) {
    guard let resolver = self.resolver as? any ServiceBindingResolver else { return }
    self.resolver = resolver.looking(for: alternatives)
  }
}

/// A query for the HTTPS records of an origin. Addresses do not wait for it (RFC 9460, section 3).
struct ServiceBindingSearch: Sendable {
  /// How long it may take, and so go on after the addresses were found.
  static let timeout = Duration.seconds(5)

  let origin: Origin
  let alternatives: SharedAlternatives

  /// Nil for origins that have none: cleartext, and those whose address is known without a query.
  init?(_ origin: Origin, hosts: HostsFile, _ alternatives: SharedAlternatives?) {
    guard let alternatives, origin.scheme == .https, hosts.knownAddresses(of: origin.host) == nil else {
      return nil
    }
    self.origin = origin
    self.alternatives = alternatives
  }

  var question: StubResolution.Question {
    .bindings(of: [ServiceBinding].name(host: self.origin.host, port: self.origin.port))
  }

  func finish(_ outcome: StubResolutionRun.Outcome, now: Duration) {
    guard case .success(let answer) = outcome,
      let port = answer.bindings.http3Port(host: self.origin.host, port: self.origin.port)
    else { return }
    self.alternatives.learn(
      port: port,
      of: self.origin,
      timeToLive: answer.timeToLive ?? .zero,
      now: now
    )
  }
}
