internal import CAllocations
internal import Glibc
internal import Synchronization

/// Counts what happens in a window of time, and what it cost the process.
///
/// Workers ask ``isRunning`` before each call and tell of each in ``Samples`` of their own; one task runs
/// ``run(_:)``.
public final class Meter: Sendable {
  private enum Phase {
    static let warmup = 0
    static let measuring = 1
    static let over = 2
  }

  private let phase = Atomic<Int>(Phase.warmup)
  private let callsLeft: Atomic<Int>
  private let workload: Workload
  /// Whether calls are counted instead of the time. Not read from the workload, where each reading costs.
  private let hasCallCount: Bool

  public init(_ workload: Workload) {
    self.workload = workload
    self.hasCallCount = workload.calls != nil
    self.callsLeft = Atomic(workload.calls ?? .max)
  }

  /// Whether another call is to be started.
  public var isRunning: Bool {
    guard !self.hasCallCount else {
      return self.callsLeft.subtract(1, ordering: .relaxed).newValue >= 0
    }
    return self.phase.load(ordering: .relaxed) != Phase.over
  }

  public var isMeasuring: Bool {
    self.hasCallCount || self.phase.load(ordering: .relaxed) == Phase.measuring
  }

  /// Starts `workers`, lets them run for the workload's time and gives what that cost.
  public func run(_ workers: @escaping @Sendable () async throws -> Samples) async throws -> Report {
    async let samples = workers()
    if self.hasCallCount {
      let before = Cost.now
      return Report(samples: try await samples, cost: Cost.now - before)
    }
    try await Task.sleep(for: .seconds(self.workload.warmup))
    let before = Cost.now
    self.phase.store(Phase.measuring, ordering: .relaxed)
    try await Task.sleep(for: .seconds(self.workload.seconds))
    self.phase.store(Phase.over, ordering: .relaxed)
    let after = Cost.now
    return Report(samples: try await samples, cost: after - before)
  }
}

/// What one worker has seen in the window.
public struct Samples: Sendable {
  /// Calls, messages or round trips, as the workload's kind says.
  public var count = 0
  /// How long each took, in nanoseconds.
  public var latencies: [UInt32] = []

  public init() {}

  public mutating func add(since start: UInt64, count: Int = 1) {
    self.count += count
    self.latencies.append(UInt32(clamping: Clock.now - start))
  }

  public mutating func add(_ other: Samples) {
    self.count += other.count
    self.latencies += other.latencies
  }
}

public enum Clock {
  /// Nanoseconds since some fixed point.
  public static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// What the process has used since it began.
public struct Cost: Sendable {
  /// Processor time of all threads, user and system, in microseconds.
  public var cpu: Double
  public var systemCPU: Double
  public var allocations: Double

  public static var now: Cost {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    func microseconds(_ time: timeval) -> Double { Double(time.tv_sec) * 1e6 + Double(time.tv_usec) }
    let system = microseconds(usage.ru_stime)
    return Cost(
      cpu: microseconds(usage.ru_utime) + system,
      systemCPU: system,
      allocations: Double(allocations_count())
    )
  }

  public static func - (lhs: Cost, rhs: Cost) -> Cost {
    Cost(
      cpu: lhs.cpu - rhs.cpu,
      systemCPU: lhs.systemCPU - rhs.systemCPU,
      allocations: lhs.allocations - rhs.allocations
    )
  }

  /// The most memory that the process has had at one time, in kilobytes.
  public static var peakMemory: Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss
  }

  /// What is allocated now, in kilobytes.
  public static var heap: Int { Int(allocations_bytes()) / 1024 }

  /// The memory that the process has now, in kilobytes, without that of its program file and libraries.
  public static var memory: Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let fields = String(decoding: line.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(separator: " ")
    guard fields.count > 2, let resident = Int(fields[1]), let ofFiles = Int(fields[2]) else { return 0 }
    return (resident - ofFiles) * sysconf(Int32(_SC_PAGESIZE)) / 1024
  }
}
