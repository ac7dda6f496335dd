/// What all clients of a process have, besides their own configurations: set once, before the first client is made.
///
/// ```swift
/// try ClientSystem.bootstrap(interceptors: [{ MyInterceptor(config: $0) }])
/// ```
///
/// For the main program, which decides what is logged and measured in all of its libraries. A library configures its own clients
/// with ``ProtocolClientConfig/interceptors``.
public enum ClientSystem {
  /// Gives interceptors to all clients of the process.
  ///
  /// They stand outside of all others: before those of ``ProtocolClientConfig/interceptors``, in the given order. What replaces
  /// the client's interceptors for a method or a request (``MethodInterceptors/replacing(_:)``) leaves them. As all
  /// factories, each runs once per call, and it may decide by the client's configuration. A client takes the list when it is
  /// made, so calls take no lock.
  ///
  /// Clients over test doubles do not have them, unless the program asks for it: those over the transports of
  /// `ConnectTesting` and `ConnectSimulation`, and so generated mocks. Such clients may be made at any time.
  ///
  /// Channels have observers beside interceptors: `bootstrap(interceptors:channelObserver:includingTestDoubles:)` of
  /// `ConnectChannels`.
  ///
  /// - Parameters:
  ///   - interceptors: Factories, outermost first.
  ///   - includingTestDoubles: Whether clients over test doubles have them, too. False by default.
  /// - Throws: ``ConnectError`` with `failed_precondition` if this was called before, or if there was a client before.
  ///   Nothing is changed then.
  public static func bootstrap(
    interceptors: [InterceptorFactory],
    includingTestDoubles: Bool = false
  ) throws(ConnectError) {
    try ClientRegistry.current.bootstrap(
      ClientRegistry.Settings(interceptors: interceptors, includesTestDoubles: includingTestDoubles)
    )
  }
}
