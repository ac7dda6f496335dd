public import Connect

/// Delays and failures that some calls get on purpose, to try how a system takes them (gRFC A33). They are decided once a call,
/// before its interceptors and its first attempt, and are not retried. The delay counts in the call's deadline. Calls that routes do not lead,
/// such as a transport's own, get no faults.
public struct FaultInjection: Sendable, Hashable {
  /// A number that is fixed, or that each call gives in a header.
  public enum Source<Value: Sendable & Hashable>: Sendable, Hashable {
    /// The same for all calls.
    case fixed(Value)
    /// What the headers of the call say; calls without them get no fault.
    ///
    /// - For delays: `x-envoy-fault-delay-request`, in milliseconds. `x-envoy-fault-delay-request-percentage` lowers the share
    ///   of calls.
    /// - For failures: `x-envoy-fault-abort-grpc-request` with a gRPC status, else `x-envoy-fault-abort-request` with an HTTP
    ///   status. `x-envoy-fault-abort-request-percentage`, or gRPC's `x-envoy-fault-abort-percentage`, lowers the share of calls.
    case header
  }

  /// A part of the calls that is delayed.
  public struct Delay: Sendable, Hashable {
    /// How long.
    public var time: Source<Duration>
    /// How many of a million calls. Headers may ask for less.
    public var perMillion: UInt32
    /// How many of a million calls the number 1 in a header of a percentage means: 10,000, the default, for percent.
    public var headerUnit: UInt32

    /// Delays this part of the calls.
    public init(_ time: Source<Duration>, perMillion: UInt32, headerUnit: UInt32 = 10_000) {
      self.time = time
      self.perMillion = perMillion
      self.headerUnit = headerUnit
    }
  }

  /// A part of the calls that fails.
  public struct Abort: Sendable, Hashable {
    /// With which code.
    public var code: Source<Code>
    /// How many of a million calls. Headers may ask for less.
    public var perMillion: UInt32
    /// How many of a million calls the number 1 in a header of a percentage means: 10,000, the default, for percent.
    public var headerUnit: UInt32

    /// Fails this part of the calls.
    public init(_ code: Source<Code>, perMillion: UInt32, headerUnit: UInt32 = 10_000) {
      self.code = code
      self.perMillion = perMillion
      self.headerUnit = headerUnit
    }
  }

  /// Which calls are delayed; nil for none.
  public var delay: Delay?
  /// Which calls fail, after their delay if they have one; nil for none.
  public var abort: Abort?
  /// How many calls of the process may be delayed at the same time; nil, the default, for any number. While there are as many, calls
  /// get no further fault: neither a delay nor a failure. A call counts until its delay is over.
  public var maximumActive: UInt32?

  /// Faults for some calls.
  public init(delay: Delay? = nil, abort: Abort? = nil, maximumActive: UInt32? = nil) {
    self.delay = delay
    self.abort = abort
    self.maximumActive = maximumActive
  }
}
