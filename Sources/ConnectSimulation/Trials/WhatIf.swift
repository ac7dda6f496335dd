internal import Connect
public import ConnectChannels
internal import Foundation

/// Tries changes on a service that was recorded: another policy, a server that is slow, frozen or gone, more load, a rollout.
///
/// The service is a ``SimulatedCluster``, its clients are real ones. Each trial runs with several seeds, which are the same for all
/// trials.
///
/// ```swift
/// let trace = try TrafficTrace(contentsOf: "access.ndjson")
/// var question = WhatIf(FittedService(trace), new: try ServiceConfig(json: text))
/// question.changes = [.slow(server: 3, by: 5)]
/// let result = try await question.run()
/// print(result)
/// ```
///
/// With a new service config and changes, there are three trials: `now`, `now, changed`, and `new, changed`. Without changes there are
/// `now` and `new`, and without a new service config `now` and `changed`.
public struct WhatIf: Sendable {
  /// What is different from what was recorded.
  public enum Change: Sendable, Hashable {
    /// The server with this number, from 0, takes requests and answers nothing.
    case freeze(server: Int)
    /// The server with this number, from 0, takes longer by a factor.
    case slow(server: Int, by: Double)
    /// The server with this number, from 0, is gone: connections are reset and refused.
    case remove(server: Int)
    /// All servers of a zone are gone.
    case loseZone(String)
    /// The load by a factor, from the beginning of the trial on.
    case load(times: Double)
    /// Servers restart one after the other, over most of the time: each goes away in order, and is gone for `downtime` after `drain`.
    case rollout(drain: Duration, downtime: Duration)
  }

  /// The service to try it on.
  public var service: FittedService
  /// How clients call the service now; nil for no rules. Without a balancing policy, calls go to all servers in turn.
  public var now: ServiceConfig?
  /// How clients would call the service; nil for no other trial.
  public var new: ServiceConfig?
  /// What else is different.
  public var changes: [Change]
  /// When the changes happen: after 1 s by default, when clients have connections.
  public var changeTime = Duration.seconds(1)
  /// For how long calls are made, in virtual time: a minute by default, and at least 1 s.
  public var duration = Duration.seconds(60)
  /// Determines all that is random: 1 by default.
  public var seed: UInt64 = 1
  /// How many seeds each trial runs with, from ``seed`` on: 3 by default, and at least 1.
  public var seedCount = 3
  /// How many clients there are, each with its connections and budgets: 1 by default, and at least one for each zone.
  public var clientCount = 1
  /// The zones that servers are spread over in turn, and clients as well. Empty, the default, for the zones of the trace
  /// (``FittedService/Server/zone``), or one if it has none.
  public var zones: [String] = []
  /// Whether the load rises and falls as it was recorded, in the time that there is. True by default.
  public var followsRecordedRates = true
  /// The timeout of calls that a service config gives none; nil, the default, for none.
  public var timeout: Duration?

  /// A question about a service.
  ///
  /// - Parameters:
  ///   - service: The service as it was recorded.
  ///   - now: How clients call it now.
  ///   - new: How clients would call it.
  ///   - changes: What else is different.
  public init(
    _ service: FittedService,
    now: ServiceConfig? = nil,
    new: ServiceConfig? = nil,
    changes: [Change] = []
  ) {
    self.service = service
    self.now = now
    self.new = new
    self.changes = changes
  }

  /// Runs all trials. It takes a thread for as long as it takes: about a second for 10,000 calls or more.
  ///
  /// - Parameter progress: Called before each run, with its trial and seed.
  /// - Throws: ``WhatIfError`` if a change does not fit the service, or if there is no load.
  public func run(
    progress: @Sendable (_ trial: String, _ seed: UInt64) -> Void = { _, _ in }
  ) async throws -> WhatIfResult {
    try self.check()
    var plans = [TrialPlan(name: "now", config: self.now, changes: [])]
    if let new = self.new {
      if !self.changes.isEmpty {
        plans.append(.init(name: "now, changed", config: self.now, changes: self.changes))
      }
      plans.append(
        .init(name: self.changes.isEmpty ? "new" : "new, changed", config: new, changes: self.changes)
      )
    } else if !self.changes.isEmpty {
      plans.append(.init(name: "changed", config: self.now, changes: self.changes))
    }
    var trials: [WhatIfResult.Trial] = []
    var quality: [WhatIfResult.Quality] = []
    var doubts: [String] = []
    for plan in plans {
      var runs: [TrialRun] = []
      for number in 0..<max(self.seedCount, 1) {
        try Task.checkCancellation()
        let seed = self.seed &+ UInt64(number)
        progress(plan.name, seed)
        runs.append(await TrialRun.make(plan, of: self, seed: seed))
      }
      if trials.isEmpty {
        quality = FitQuality.make(self.service, runs)
        doubts = FitQuality.doubts(quality, trialCalls: runs.reduce(0) { $0 + $1.report.calls })
      }
      trials.append(.init(name: plan.name, runs: runs.map(\.figures)))
    }
    doubts += ChangeDoubts.notes(self)
    let hasCanceled = self.service.methods.contains { $0.failures.contains { $0.code == .canceled } }
    if !hasCanceled, trials.contains(where: { $0.runs.contains { $0.failures["canceled"] != nil } }) {
      doubts.append("canceled: calls that had not ended when the trial was over, since they have no timeout")
    }
    return WhatIfResult(
      seed: self.seed,
      seconds: self.duration.seconds,
      callsPerSecond: self.service.callsPerSecond,
      servers: self.service.servers.map(\.name),
      trials: trials,
      quality: quality,
      mistakes: self.service.trace.mistakes.count,
      notes: doubts + self.service.notes
    )
  }

  /// The time between the beginnings of two restarts in a rollout: all of them fit into the time after ``changeTime``.
  var rolloutPause: Duration {
    max(self.duration - self.changeTime, .zero) / (self.service.servers.count + 1)
  }

  /// The zone of each server.
  var serverZones: [String] {
    let servers = self.service.servers
    guard self.zones.isEmpty else { return servers.indices.map { self.zones[$0 % self.zones.count] } }
    // Without any, it does not matter which one it is.
    let none = servers.contains { $0.zone != nil } ? Self.noZone : "a"
    return servers.map { $0.zone ?? none }
  }

  /// The zones of clients, which are in them in turn.
  var clientZones: [String] {
    guard self.zones.isEmpty else { return self.zones }
    let zones = Set(self.serverZones)
    return (zones.count > 1 ? zones.subtracting([Self.noZone]) : zones).sorted()
  }

  /// Stands for the zone of servers that have none where others have one.
  static let noZone = "(none)"

  private func check() throws(WhatIfError) {
    let count = self.service.servers.count
    for change in self.changes {
      switch change {
      case .freeze(let server), .slow(let server, _), .remove(let server):
        guard (0..<count).contains(server) else {
          throw WhatIfError("there is no server \(server + 1): the service has \(count)")
        }
      case .loseZone(let zone):
        let zones = self.serverZones
        guard zones.contains(zone) else {
          throw WhatIfError(
            "no server is in zone \"\(zone)\": the zones are \(Set(zones).sorted().joined(separator: ", ")), of "
              + (count == 1 ? "1 server" : "\(count) servers")
          )
        }
      case .load(let factor):
        guard factor > 0, factor <= 1_000 else { throw WhatIfError("the load grows by a factor up to 1,000") }
      case .rollout: break
      }
      if case .slow(_, let factor) = change, !(factor > 0 && factor <= 1_000_000) {
        throw WhatIfError("a server is slow by a factor from 0 to 1,000,000")
      }
    }
    guard self.changes.isEmpty || self.changeTime < max(self.duration, .seconds(1)) else {
      throw WhatIfError(
        "changes would come after \(Plot.number(self.changeTime.seconds)) s, when the \(Plot.number(self.duration.seconds)) s of the "
          + "trial are over: let them come earlier, or the trial be longer"
      )
    }
    guard self.service.callsPerSecond > 0, !self.service.methods.isEmpty else {
      throw WhatIfError("the trace has no times: say how many calls begin in a second")
    }
  }
}

/// Why a question cannot be answered.
public struct WhatIfError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong, and what to do.
  public var description: String

  init(_ description: String) {
    self.description = description
  }
}
