extension ProtocolClientConfig {
  /// When the client's ``ProtocolClientConfig/logger`` warns of interceptors that hold calls up. Each warning names the
  /// method and the interceptor.
  public struct HookWarnings: Sendable, Hashable {
    /// Warn of an interceptor that holds a request, a message or a response for this time without passing it on; nil
    /// for no warning. The warning comes after this time at the earliest, and after twice this time at the latest. Each
    /// hold causes one warning. In the async form, an interceptor holds the request until it calls `next`.
    public var holding: Duration?
    /// Warn of a hook that runs for this time without returning: it blocks the event loop, and all calls there with
    /// it. Nil for no warning. The measurement reads the clock twice for each hook.
    public var blocking: Duration?

    /// Warnings after the given times; none where a time is nil.
    public init(holding: Duration? = nil, blocking: Duration? = nil) {
      self.holding = holding
      self.blocking = blocking
    }

    /// No warnings, except in debug builds: these warn of hooks that block for 100 milliseconds.
    public static var defaults: HookWarnings {
      #if DEBUG
      HookWarnings(blocking: .milliseconds(100))
      #else
      HookWarnings()
      #endif
    }
  }
}
