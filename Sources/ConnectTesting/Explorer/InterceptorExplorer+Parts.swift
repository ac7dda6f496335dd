package import Connect

extension InterceptorExplorer {
  /// Puts something between the client and the explorer's server, such as interceptors of bytes on the wire.
  ///
  /// - Parameter wrap: Makes the transport that the client sees. Called for each schedule, on the thread of the exploration.
  package func transport(
    _ wrap: @escaping @Sendable (ExplorerWorld, any HTTPClientInterface) -> any HTTPClientInterface
  ) -> Self {
    var copy = self
    copy.settings.transports.append(wrap)
    return copy
  }

  /// The same explorer without one of its parts, mostly interceptors. A test that still passes says nothing about that part.
  ///
  /// - Parameter place: Counts what was given to ``options(_:)``, then what was given to ``transport(_:)``, and then the chain,
  ///   outermost first. Exploring throws if there is no such place.
  package func withoutPart(at place: Int) -> Self {
    var copy = self
    if copy.settings.optionChanges.indices.contains(place) {
      copy.settings.optionChanges.remove(at: place)
      return copy
    }
    var place = place - copy.settings.optionChanges.count
    if copy.settings.transports.indices.contains(place) {
      copy.settings.transports.remove(at: place)
      return copy
    }
    place -= copy.settings.transports.count
    let build = self.build
    copy = Self { [place] world in
      let subject = try build(world)
      var factories = subject.factories
      guard factories.indices.contains(place) else { throw MissingInterceptor(count: factories.count) }
      factories.remove(at: place)
      return Subject(observing: subject.observed, interceptors: factories)
    }
    copy.settings = self.settings
    copy.checks = self.checks
    return copy
  }
}

/// There is no interceptor at the place.
private struct MissingInterceptor: Error {
  /// How many the chain has.
  let count: Int
}
