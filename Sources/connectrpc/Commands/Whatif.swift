import ArgumentParser
import Connect
import ConnectChannels
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import Foundation

struct Whatif: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Tries another policy, a fault or more load on recorded traffic, in virtual time.",
    discussion: """
      Traces are access logs with one JSON object a line (time, method, duration, code, server), OTLP traces in JSON, cassettes of \
      connectrpc record, and reports of connectrpc load --json. - is standard input. Of large files only counts are kept. A service that \
      does the same is simulated, with real clients: as it is now, and with what the options change. The table also says how well \
      the simulation explains the trace, and what it leaves out.

        connectrpc whatif access.ndjson --config new-service-config.json
        connectrpc whatif spans.json --now config.json --slow 3=5x --for 2m
        connectrpc whatif --storm services.json

      --storm finds out how much retries of several services multiply the load when the last of them fails, and proposes budgets. \
      Exit code 1: there is a storm, or a deadline that cannot be met.
      """
  )

  @Argument(help: "The traces; those of several servers count together.", completion: .file())
  var traces: [String] = []

  @Option(
    help: ArgumentHelp("The new service config: gRPC's JSON.", valueName: "file"),
    completion: .file(extensions: ["json"])
  )
  var config: String?

  @Option(
    help: ArgumentHelp(
      "The service config that clients have now; by default there are no rules.",
      valueName: "file"
    ),
    completion: .file(extensions: ["json"])
  )
  var now: String?

  @OptionGroup(title: "Changes") var changes: ChangeOptions

  @Option(
    help: ArgumentHelp("How many servers there are, if the traces do not name all.", valueName: "servers")
  )
  var servers: Int?

  @Option(
    help: ArgumentHelp(
      "How many requests a server works on at the same time, if you know it; by default what latency against load shows.",
      valueName: "requests"
    )
  )
  var concurrency: Int?

  @Option(
    help: ArgumentHelp(
      "How many calls begin in a second; by default as recorded, on average.",
      valueName: "calls"
    )
  )
  var rate: Double?

  @Option(
    help: ArgumentHelp(
      "The unit of durations in access logs that have none: s, ms (the default), us or ns.",
      valueName: "unit"
    )
  )
  var unit = DurationUnit.ms

  @Flag(help: "Keep the load even, in place of its course as it was recorded.")
  var evenLoad = false

  @Flag(help: "Servers stop to work for callers that have gone; by default they finish.")
  var stopsAbandoned = false

  @Option(
    help: ArgumentHelp(
      "How many clients there are, each with its connections and budgets; at least one for each zone.",
      valueName: "clients"
    )
  )
  var clients = 1

  @Option(help: "The timeout of calls that have none in the service config; by default there is none.")
  var timeout: TimeSpan?

  @Option(
    name: .customLong("for"),
    help: "For how long calls are made, in virtual time: 1m by default, less at high rates."
  )
  var length: TimeSpan?

  @Option(help: ArgumentHelp("The first seed: the same seeds give the same result.", valueName: "number"))
  var seed: UInt64 = 1

  @Option(help: ArgumentHelp("How many seeds each trial runs with.", valueName: "count"))
  var seeds = 3

  @Option(
    help: ArgumentHelp(
      "Check services that call one another; the file says which call which, and by which service configs.",
      valueName: "file"
    ),
    completion: .file(extensions: ["json"])
  )
  var storm: String?

  @Flag(help: "Print the result as JSON.")
  var json = false

  @OptionGroup(title: "Schema: calls of methods that it does not have are mistakes of the trace") var schema:
    SchemaOptions

  func validate() throws {
    guard self.traces.isEmpty != (self.storm == nil) else {
      throw ValidationError(
        self.storm == nil
          ? "give a trace, or --storm with a map of services" : "give either traces or --storm"
      )
    }
    if let servers = self.servers, !(1...10_000).contains(servers) {
      throw ValidationError("--servers is from 1 to 10,000")
    }
    if let concurrency = self.concurrency, concurrency < 1 {
      throw ValidationError("--concurrency is at least 1")
    }
    if let rate = self.rate, !(rate > 0 && rate <= 1_000_000) {
      throw ValidationError("--rate is from 0 to 1,000,000 calls a second")
    }
    guard (1...10_000).contains(self.clients) else { throw ValidationError("--clients is from 1 to 10,000") }
    guard (1...1_000).contains(self.seeds) else { throw ValidationError("--seeds is from 1 to 1,000") }
  }

  func run() async throws {
    try await Failure.reported {
      if let storm = self.storm {
        try await self.check(storm)
      } else {
        try await self.tryChanges()
      }
    }
  }

  // MARK: Trials

  private func tryChanges() async throws {
    let trace = try self.readTraces(try await self.methods())
    if trace.mistakes.count > 0 {
      let lines = trace.mistakes.description.split(separator: "\n").map(String.init)
      Console.note("of the traces, \(lines[0])")
      for line in lines.dropFirst() { Console.error(Console.line(line)) }
    }
    var service = FittedService(trace, servers: self.servers)
    if let concurrency = self.concurrency { service.concurrency = concurrency }
    service.finishesAbandonedRequests = !self.stopsAbandoned
    if let rate = self.rate { service.callsPerSecond = rate }
    var question = WhatIf(
      service,
      now: try self.now.map(Self.serviceConfig),
      new: try self.config.map(Self.serviceConfig),
      changes: try self.changes.changes(service.servers.map(\.name))
    )
    if let time = self.changes.at?.duration { question.changeTime = time }
    question.zones = self.changes.zoneNames
    question.clientCount = self.clients
    question.timeout = self.timeout?.duration
    question.followsRecordedRates = !self.evenLoad
    (question.seed, question.seedCount) = (self.seed, self.seeds)
    question.duration = self.length?.duration ?? Self.length(service.callsPerSecond)
    let isLive = Console.isErrorTerminal && !self.json
    let result: WhatIfResult
    do {
      result = try await question.run { trial, seed in
        if isLive { Console.status("\(trial), seed \(seed)") }
      }
    } catch let error as WhatIfError {
      throw Failure.usage(Self.advising("\(error)"))
    }
    if isLive { Console.status("") }
    Console.output(
      self.json ? Console.json(String(decoding: try result.json(), as: UTF8.self)) : Self.plain(result)
    )
  }

  /// Names of methods and servers come from the trace: they may have control characters.
  private static func plain(_ result: WhatIfResult) -> String {
    result.description.split(separator: "\n", omittingEmptySubsequences: false).map {
      Console.line(Self.advising(String($0)))
    }
    .joined(separator: "\n")
  }

  /// The methods that there are; nil for any.
  private func methods() async throws -> Set<String>? {
    guard let files = try await self.schema.localFiles() else { return nil }
    return try Failure.local { Set(try files.descriptorPool().services.flatMap(\.methods).map(\.info.path)) }
  }

  private func readTraces(_ methods: Set<String>?) throws -> TrafficTrace {
    var sum: TrafficTrace?
    for path in self.traces {
      do {
        let trace = try TrafficTrace(contentsOf: path, methods: methods, unit: self.unit.duration)
        if sum == nil { sum = trace } else { sum?.merge(trace) }
      } catch {
        let lines = "\(error)".split(separator: "\n").map(String.init)
        throw Failure(
          message: lines.first ?? "",
          exitCode: 64,
          furtherLines: lines.dropFirst().map(Console.line)
        )
      }
    }
    guard let sum else { throw Failure.usage("give a trace") }
    return sum
  }

  /// A minute, or as long as 60,000 calls take, but at least ten seconds.
  private static func length(_ rate: Double) -> Duration {
    .seconds(min(max(60_000 / max(rate, 1e-3), 10), 60).rounded())
  }

  private static func serviceConfig(_ path: String) throws -> ServiceConfig {
    do {
      return try ServiceConfig(json: try self.text(path))
    } catch let error as ServiceConfigError {
      throw Failure.usage("\(path): \(error)")
    }
  }

  private static func text(_ path: String) throws -> String {
    do {
      return try String(contentsOfFile: path, encoding: .utf8)
    } catch {
      throw Failure.usage("cannot read '\(path)'")
    }
  }

  private static func advising(_ message: String) -> String {
    let options = [
      ("say how many calls begin in a second", "give --rate"), ("give the right unit", "give --unit"),
      ("give another one if not", "--unit if not"), ("say how many there are", "--servers"),
      ("give the load that you ask about", "give --rate"),
      ("say how many requests a server works on at a time", "give --concurrency"),
      ("let the trial be longer", "give --for"),
      ("give a longer time, more seeds, or more load", "give --for, --seeds or --rate"),
    ]
    return options.reduce(message) { $0.replacing($1.0, with: $1.1) }
  }

  // MARK: Storms

  private func check(_ path: String) async throws {
    let result: StormResult
    do {
      var check = StormCheck(try ServiceMap(json: try Self.text(path)))
      check.seed = self.seed
      result = await check.run()
    } catch let error as WhatIfError {
      throw Failure.usage("\(path): \(error)")
    }
    Console.output(self.json ? String(decoding: try result.json(), as: UTF8.self) : "\(result)")
    if result.isStorm { throw ExitCode(1) }
  }
}

/// The unit of durations that have none.
enum DurationUnit: String, ExpressibleByArgument, CaseIterable {
  case s, ms, us, ns

  var duration: Duration {
    switch self {
    case .s: .seconds(1)
    case .ms: .milliseconds(1)
    case .us: .microseconds(1)
    case .ns: .nanoseconds(1)
    }
  }
}
