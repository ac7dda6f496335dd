internal import Connect
public import Metrics
internal import Synchronization

/// The metrics of a client's calls, by the semantic conventions of OpenTelemetry for RPC, version 1.40.0, by the names of
/// gRPC's own libraries, or both. Made once; ``MetricsInterceptor`` records into it.
///
/// OpenTelemetry has one metric, the timer `rpc.client.call.duration`: how long a call took for its caller, with all its
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
///
/// gRPC's metrics are off unless ``Options/families`` has ``MetricFamilies/grpc``: each attempt is observed then. They are
/// `grpc.client.attempt.…` and `grpc.client.call.…`; ``descriptions(of:)`` lists them with units and labels:
///
/// ```swift
/// let metrics = CallMetrics(options: CallMetrics.Options(families: [.openTelemetry, .grpc]))
/// ```
public final class CallMetrics: Sendable {
  /// Which dimensions the metric has, and how many values.
  public struct Options: Sendable {
    /// Whose names the metrics have.
    public var families: MetricFamilies
    /// Whether `server.address` and `server.port` are dimensions. Clients that choose their hosts at run time may
    /// want to do without. `grpc.target` is `other` then.
    public var includesServer: Bool
    /// Whether gRPC's metrics name methods that the program learns of while it runs (`MethodInfo.isDynamic`). By default these
    /// have `other` as `grpc.method`.
    public var includesDynamicMethods = false
    /// Further dimensions, the same for all calls.
    public var dimensions: [(name: String, value: String)]
    /// How many pairs of a method and a server have timers. Calls of further pairs are recorded with `_OTHER` as
    /// `rpc.method` and without a server, in gRPC's metrics with `other` as `grpc.method` and `grpc.target`. Bounds memory,
    /// here and in the backend.
    public var maximumMethods: Int

    /// Options as given; what is left out is as in ``defaults``.
    public init(
      families: MetricFamilies = .openTelemetry,
      includesServer: Bool = true,
      dimensions: [(name: String, value: String)] = [],
      maximumMethods: Int = 1024
    ) {
      self.families = families
      self.includesServer = includesServer
      self.dimensions = dimensions
      self.maximumMethods = maximumMethods
    }

    /// OpenTelemetry's names, with the server, no further dimensions, 1,024 methods.
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
  private let grpc = Mutex<[GRPCKey: GRPCInstruments]>([:])

  /// Whether there is a backend and something to record. If not, calls are not touched.
  let isEnabled: Bool
  /// Whether attempts are recorded.
  let observesAttempts: Bool

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
    self.isEnabled =
      !(factory is NOOPMetricsHandler) && !options.families.isDisjoint(with: [.openTelemetry, .grpc])
    self.observesAttempts = self.isEnabled && options.families.contains(.grpc)
  }

  /// The metrics of families, as the sources of the families describe them.
  public static func descriptions(of families: MetricFamilies) -> [MetricDescription] {
    var descriptions: [MetricDescription] = []
    if families.contains(.openTelemetry) { descriptions.append(SemanticConventions.clientCall) }
    if families.contains(.grpc) { descriptions += GRPCCallMetric.allCases.map(\.description) }
    return descriptions
  }

  var now: Duration { self.time.now }

  /// Records a call that has ended.
  func record(_ duration: Duration, system: RPCSystem, _ method: MethodInfo, server: Origin, code: Code) {
    guard self.options.families.contains(.openTelemetry) else { return }
    let key = Key(system: system, path: method.path, server: self.options.includesServer ? server : nil)
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

  // MARK: gRPC

  private struct GRPCKey: Hashable {
    /// Nil for methods that are counted together.
    var path: String?
    var server: Origin?
  }

  /// gRPC's metrics of a method; nil if they are not recorded.
  func grpcInstruments(_ method: MethodInfo, _ server: Origin) -> GRPCInstruments? {
    guard self.observesAttempts else { return nil }
    let isNamed = !method.isDynamic || self.options.includesDynamicMethods
    var key = GRPCKey(path: isNamed ? method.path : nil, server: self.options.includesServer ? server : nil)
    let known = self.grpc.withLock { instruments -> GRPCInstruments? in
      if instruments[key] == nil, instruments.count >= self.options.maximumMethods { key = GRPCKey() }
      return instruments[key]
    }
    if let known { return known }
    let made = GRPCInstruments(
      self.factory,
      method: key.path.map(SemanticConventions.methodName) ?? GRPCLabels.other,
      target: key.server?.grpcTarget ?? GRPCLabels.other,
      further: self.options.dimensions.map { ($0.name, $0.value) }
    )
    return self.grpc.withLock { instruments in
      if let other = instruments[key] { return other }
      instruments[key] = made
      return made
    }
  }

  // MARK: OpenTelemetry

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
