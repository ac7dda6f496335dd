/// How loaded a server says it is (ORCA, gRFC A51): per call in the trailer `endpoint-load-metrics-bin`, or on a
/// stream.
public struct LoadReport: Sendable, Hashable {
  /// How much of the CPU is used: 0 to 1, or more if the server is overloaded.
  public var cpuUtilization: Double
  /// How much of the memory is used: 0 to 1.
  public var memoryUtilization: Double
  /// The load in the server's own measure; counts instead of the CPU if it is above zero.
  public var applicationUtilization: Double
  /// Calls per second that the server handles, from all clients.
  public var queriesPerSecond: Double
  /// Calls per second that fail on the server, of those in ``queriesPerSecond``.
  public var errorsPerSecond: Double

  /// A report with the given figures; 0 means that the server does not report it.
  public init(
    cpuUtilization: Double = 0,
    memoryUtilization: Double = 0,
    applicationUtilization: Double = 0,
    queriesPerSecond: Double = 0,
    errorsPerSecond: Double = 0
  ) {
    self.cpuUtilization = cpuUtilization
    self.memoryUtilization = memoryUtilization
    self.applicationUtilization = applicationUtilization
    self.queriesPerSecond = queriesPerSecond
    self.errorsPerSecond = errorsPerSecond
  }

  /// The utilization that weights are computed from: the application's, else the CPU's (gRFC A58).
  public var utilization: Double {
    self.applicationUtilization > 0 ? self.applicationUtilization : self.cpuUtilization
  }

  /// Queries per second and utilization, with errors counted as load (gRFC A58); 0 if the report says too little.
  ///
  /// - Parameter errorPenalty: The utilization that is added if all calls fail.
  public func weight(errorPenalty: Double) -> Double {
    guard self.isUsable else { return 0 }
    let errors = max(0, self.errorsPerSecond) / self.queriesPerSecond * errorPenalty
    let weight = self.queriesPerSecond / (self.utilization + errors)
    return weight.isFinite ? weight : 0
  }

  /// Whether the report gives a weight. Not-a-number does not.
  var isUsable: Bool { self.queriesPerSecond > 0 && self.utilization > 0 }
}
