extension ProtocolClientConfig {
  /// When the client's ``ProtocolClientConfig/logger`` warns of interceptors that hold calls up. Each warning names the
  /// method and the interceptor.
  public struct HookWarnings: Sendable, Hashable {
    /// Warn of an interceptor that has a request, a message or a response for so long and has not passed it on; nil for no
    /// warning. The warning comes after this time at the earliest, after twice this time at the latest, once for each
    /// time that the call is held up. In the async form, an interceptor has the request until it calls `next`.
    public var holding: Duration?
    /// Warn of a hook that does not return for so long: it blocks the event loop, and all calls there with it. nil for no
    /// warning. Measuring takes two looks at the clock for each hook.
    public var blocking: Duration?

    public init(holding: Duration? = nil, blocking: Duration? = nil) {
      self.holding = holding
      self.blocking = blocking
    }

    /// No warnings, but in debug builds one of hooks that block for 100 milliseconds.
    public static var defaults: HookWarnings {
      #if DEBUG
      HookWarnings(blocking: .milliseconds(100))
      #else
      HookWarnings()
      #endif
    }
  }
}
