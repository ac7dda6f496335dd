public import Connect

extension ClientSystem {
  /// Gives interceptors to all clients of the process, and an observer to all of their channels.
  ///
  /// ```swift
  /// try ClientSystem.bootstrap(interceptors: [], channelObserver: ChannelMetrics())
  /// ```
  ///
  /// Each `NIOHTTPClient` has the observer, besides that of its own configuration (``ChannelConfiguration/observer``), which
  /// hears of each event first. For all else, see `ClientSystem` of `Connect`. Test doubles have
  /// the interceptors if the program asks for it, but never the observer.
  ///
  /// - Parameters:
  ///   - interceptors: Factories, outermost first.
  ///   - channelObserver: Hears of connections, picks, ejections and resolver updates of all clients.
  ///   - includingTestDoubles: Whether clients over test doubles have the interceptors, too. False by default.
  /// - Throws: `ConnectError` with `failed_precondition` if a bootstrap was called before, or if there was a client
  ///   before, which may be a `NIOHTTPClient`. Nothing is changed then.
  public static func bootstrap(
    interceptors: [InterceptorFactory],
    channelObserver: any ChannelObserver,
    includingTestDoubles: Bool = false
  ) throws(ConnectError) {
    try ClientRegistry.current.bootstrap(
      ClientRegistry.Settings(
        interceptors: interceptors,
        channelObserver: channelObserver,
        includesTestDoubles: includingTestDoubles
      )
    )
  }
}

extension ChannelConfiguration {
  /// Adds the observer that a program has for all clients, if there is one. Called once for each client, which is none for tests.
  package mutating func addProcessObserver() {
    let settings = ClientRegistry.current.settings(isTestDouble: false)
    guard let observer = settings?.channelObserver as? any ChannelObserver else { return }
    self.observer = ObserverPair(first: self.observer, second: observer)
  }
}

/// The observer of a client, and that of the process.
private struct ObserverPair: ChannelObserver {
  let first: (any ChannelObserver)?
  let second: any ChannelObserver

  func channel(to origin: Origin, did event: ChannelEvent) {
    self.first?.channel(to: origin, did: event)
    self.second.channel(to: origin, did: event)
  }
}
