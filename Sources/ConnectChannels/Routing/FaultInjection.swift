public import Connect

/// Delays and failures that some calls get on purpose, to try how a system takes them (gRFC A33). They are decided once a call,
/// before its first attempt, and are not retried.
public struct FaultInjection: Sendable, Hashable {
  /// A number that is fixed, or that each call gives in a header.
  public enum Source<Value: Sendable & Hashable>: Sendable, Hashable {
    /// The same for all calls.
    case fixed(Value)
    /// What the headers of the call say; calls without them get no fault. For delays: `x-envoy-fault-delay-request`, in
    /// milliseconds. For failures: `x-envoy-fault-abort-grpc-request`, else `x-envoy-fault-abort-request` with an HTTP status.
    /// Headers with the same names and `-percentage` in place of `-request` lower the share of calls.
    case header
  }

  /// A part of the calls that is delayed.
  public struct Delay: Sendable, Hashable {
    /// How long.
    public var time: Source<Duration>
    /// How many of a million calls.
    public var perMillion: UInt32

    /// Delays this part of the calls.
    public init(_ time: Source<Duration>, perMillion: UInt32) {
      self.time = time
      self.perMillion = perMillion
    }
  }

  /// A part of the calls that fails.
  public struct Abort: Sendable, Hashable {
    /// With which code.
    public var code: Source<Code>
    /// How many of a million calls.
    public var perMillion: UInt32

    /// Fails this part of the calls.
    public init(_ code: Source<Code>, perMillion: UInt32) {
      self.code = code
      self.perMillion = perMillion
    }
  }

  /// Which calls are delayed; nil for none.
  public var delay: Delay?
  /// Which calls fail, after their delay if they have one; nil for none.
  public var abort: Abort?
  /// How many calls have a fault at the same time at most; nil, the default, for any number.
  public var maximumActive: UInt32?

  /// Faults for some calls.
  public init(delay: Delay? = nil, abort: Abort? = nil, maximumActive: UInt32? = nil) {
    self.delay = delay
    self.abort = abort
    self.maximumActive = maximumActive
  }
}
