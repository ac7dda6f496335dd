internal import Connect
public import Metrics
internal import Synchronization

/// The metrics of a client's calls, by the semantic conventions of OpenTelemetry for RPC, version 1.40.0. Made once;
/// ``MetricsInterceptor`` records into it.
///
/// There is one metric, the timer `rpc.client.call.duration`: how long a call took for its caller, with all its
/// attempts. A stream counts from its start to its end. The metric's dimensions:
///
/// | dimension | for example |
/// | --- | --- |
/// | `rpc.system.name` | `connectrpc`; `grpc` for gRPC and gRPC-Web |
/// | `rpc.method` | `connectrpc.eliza.v1.ElizaService/Say` |
/// | `rpc.response.status_code` | `OK`, `NOT_FOUND` (gRPC); `not_found` (Connect, absent on success) |
/// | `error.type` | the same; absent on success |
/// | `server.address`, `server.port` | `demo.connectrpc.com`, `443` |
///
/// The number of calls is the timer's count. Calls that fail before their interceptors
/// begin (a host that is no URL, a deadline that has passed) are not seen.
public final class CallMetrics: Sendable {
  /// Which dimensions the metric has, and how many values.
  public struct Options: Sendable {
    /// Whether `server.address` and `server.port` are dimensions. Clients that choose their hosts at run time may
    /// want to do without.
    public var includesServer: Bool
    /// Further dimensions, the same for all calls.
    public var dimensions: [(name: String, value: String)]
    /// How many pairs of a method and a server have timers. Calls of further pairs are recorded with `_OTHER` as
    /// `rpc.method` and without a server. Bounds memory, here and in the backend.
    public var maximumMethods: Int

    /// Options as given; what is left out is as in ``defaults``.
    public init(
      includesServer: Bool = true,
      dimensions: [(name: String, value: String)] = [],
      maximumMethods: Int = 1024
    ) {
      self.includesServer = includesServer
      self.dimensions = dimensions
      self.maximumMethods = maximumMethods
    }

    /// With the server, no further dimensions, 1,024 methods.
    public static var defaults: Options { Options() }
  }

  private struct Key: Hashable {
    var system: RPCSystem
    var path: String
    var server: Origin?
  }

  /// The timers of one method at one server, by code. Made when first needed.
  private typealias Timers = [Timer?]

  private let factory: any MetricsFactory
  private let options: Options
  private let time: ElapsedTime
  private let timers = Mutex<[Key: Timers]>([:])

  /// Whether there is a backend. If not, calls are not touched.
  let isEnabled: Bool

  /// Metrics for the calls of a client, or of several.
  ///
  /// - Parameters:
  ///   - factory: The backend. The default is that of the process; bootstrap it before.
  ///   - options: Which dimensions the metric has, and how many values.
  ///   - clock: What durations are measured with.
  public init(
    factory: any MetricsFactory = MetricsSystem.factory,
    options: Options = .defaults,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.factory = factory
    self.options = options
    self.time = ElapsedTime(on: clock)
    self.isEnabled = !(factory is NOOPMetricsHandler)
  }

  var now: Duration { self.time.now }

  /// Records a call that has ended.
  func record(_ duration: Duration, system: RPCSystem, path: String, server: Origin, code: Code) {
    let key = Key(system: system, path: path, server: self.options.includesServer ? server : nil)
    self.timer(for: key, code).record(duration: duration)
  }

  private func timer(for key: Key, _ code: Code) -> Timer {
    var key = key
    let known = self.timers.withLock { timers -> Timer? in
      if timers[key] == nil, timers.count >= self.options.maximumMethods {
        key.path = SemanticConventions.other
        key.server = nil
      }
      return timers[key]?[code.rawValue]
    }
    if let known { return known }
    // Made outside of the lock, since the backend is other people's code. If another thread was faster, its timer stays,
    // and the backend knows both as one.
    let timer = Timer(
      label: SemanticConventions.clientCallDuration,
      dimensions: self.dimensions(key, code),
      preferredDisplayUnit: .seconds,
      factory: self.factory
    )
    return self.timers.withLock { timers in
      if let other = timers[key]?[code.rawValue] { return other }
      timers[key, default: Timers(repeating: nil, count: Code.allCases.count)][code.rawValue] = timer
      return timer
    }
  }

  private func dimensions(_ key: Key, _ code: Code) -> [(String, String)] {
    var dimensions = [
      (SemanticConventions.system, key.system.rawValue),
      (SemanticConventions.method, SemanticConventions.methodName(inPath: key.path)),
    ]
    if let status = key.system.statusCode(code) {
      dimensions.append((SemanticConventions.statusCode, status))
      if code != .ok { dimensions.append((SemanticConventions.errorType, status)) }
    }
    if let server = key.server {
      dimensions.append((SemanticConventions.serverAddress, server.host))
      if let port = server.serverPort { dimensions.append((SemanticConventions.serverPort, String(port))) }
    }
    for (name, value) in self.options.dimensions { dimensions.append((name, value)) }
    return dimensions
  }
}
