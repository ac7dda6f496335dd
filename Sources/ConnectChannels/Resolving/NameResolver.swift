public import Connect

/// Finds the endpoints of an origin: the source of a channel's addresses.
///
/// A resolver reports what it has found whenever that changes. A source that has to be asked, such as DNS, is wrapped
/// in ``PollingResolver``, which knows when to look again.
///
/// ```swift
/// let resolver = PushResolver()
/// resolver.update([Endpoint("10.0.0.1:8080"), Endpoint("10.0.0.2:8080")].compactMap { $0 })
/// ```
public protocol NameResolver: Sendable {
  /// Whether answers may have a service config or routes; true unless the resolver says otherwise. If they may, calls wait for
  /// the first answer before their interceptors run, so that its rules hold for them. Otherwise calls do not wait,
  /// and answers should have neither.
  ///
  /// Read when a channel is made, under a lock of its transport. The resolver must not call the transport from here.
  var mayBringServiceConfig: Bool { get }

  /// Begins to look for the endpoints of `origin`. Called on `executor`.
  ///
  /// - Parameters:
  ///   - origin: The channel's origin, whose host may be a name or an address.
  ///   - executor: The channel's executor, and its clock. A resolver need not use it.
  ///   - report: To be called with each answer, from any thread. An error means that nothing is known, or that the last
  ///     look has failed. The channel keeps the last good answer. Without one, calls fail with the error.
  /// - Returns: The watch, which goes on until it is cancelled. The caller keeps it; it must not retain the channel by
  ///   itself.
  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch
}

extension NameResolver {
  public var mayBringServiceConfig: Bool { true }
}

/// What a ``NameResolver`` does for one channel. All functions are called on the channel's executor.
public protocol ResolverWatch: AnyObject, Sendable {
  /// A connection has failed, or its server says that it goes away: the addresses may be out of date. A resolver that
  /// pushes its answers need not do anything.
  func resolveAgain()

  /// These clusters of the routes that the resolver has found are in use: by routes, or by calls that were led there before the
  /// routes left. A resolver whose routes change should go on to report such clusters in ``Routing/clusters``, so that these calls
  /// hear of other servers (gRFC A31).
  ///
  /// Called when that changes. The default does nothing.
  ///
  /// - Parameter names: All clusters that are in use.
  func keepClusters(_ names: Set<String>)

  /// No more answers are wanted.
  func cancel()
}

extension ResolverWatch {
  public func keepClusters(_ names: Set<String>) {}
}
