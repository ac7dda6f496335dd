public import Connect

/// Finds the endpoints of an origin: the source of a channel's addresses.
///
/// A resolver says what it has found as often as that changes. One that only looks when it is asked, as DNS does, is wrapped
/// in ``PollingResolver``, which knows when to look again.
///
/// ```swift
/// let resolver = PushResolver()
/// resolver.update([Endpoint("10.0.0.1:8080"), Endpoint("10.0.0.2:8080")].compactMap { $0 })
/// ```
public protocol NameResolver: Sendable {
  /// Whether answers may have a service config. Where they may, calls wait for the first answer before their interceptors run,
  /// so that its rules hold for them; else they wait for nothing. True unless the resolver says otherwise. Asked when a channel is
  /// made, under a lock of its transport, which the resolver must not call from here.
  var mayBringServiceConfig: Bool { get }

  /// Begins to look for the endpoints of `origin`. Called on `executor`.
  ///
  /// - Parameters:
  ///   - executor: Where the channel lives, and its clock. A resolver need not use it.
  ///   - report: To be called with each answer, from any thread. An error means that nothing is known, or that the last look
  ///     has failed: the channel keeps the last good answer, and has calls fail with the error where there is none.
  /// - Returns: The look that goes on until it is cancelled. The caller keeps it; it must not keep the channel by itself.
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

  /// No more answers are wanted.
  func cancel()
}
