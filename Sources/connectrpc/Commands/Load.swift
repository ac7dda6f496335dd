import ArgumentParser
import Connect
import ConnectChannels
import ConnectNIO
import ConnectProtobufC
import Foundation
import NIOCore

struct Load: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Calls a method under load, and measures it.",
    discussion: """
      With --rate, calls begin at that rate whether the server keeps up or not, and latencies count from when a call was due. \
      Without it, --callers make one call after the other. Calls take 30 seconds at most, unless --timeout says otherwise. \
      An interrupt (Ctrl-C) ends the load; calls in flight have a second to end, and the report follows.

        connectrpc load http://localhost:8080/acme.v1.Users/Get -d '{"id": 7}' --rate 500 --duration 30s
        connectrpc load http://localhost:8080/acme.v1.Users/Get --callers 64 --count 100000 --json
      """
  )

  @OptionGroup var request: RequestOptions

  @Option(help: ArgumentHelp("How many calls begin in a second.", valueName: "calls"))
  var rate: Double?

  @Option(
    name: [.customShort("c"), .long],
    help: ArgumentHelp(
      "How many calls are under way at any time, without --rate; 32 by default.",
      valueName: "calls"
    )
  )
  var callers: Int?

  @Option(help: "How long calls begin, such as 30s; 10s without --count.")
  var duration: TimeSpan?

  @Option(name: [.customShort("n"), .long], help: ArgumentHelp("How many calls.", valueName: "calls"))
  var count: Int?

  @Option(help: "How long it takes to come from nothing to the whole load.")
  var ramp: TimeSpan?

  @Option(
    help: ArgumentHelp(
      "How many connections each event loop has to each address at most; by default as many as HTTP/2 needs, and for HTTP/1.1 as many as there are callers, or 100 if that is more.",
      valueName: "connections"
    )
  )
  var connections: Int?

  @Option(help: ArgumentHelp("On how many event loops, and so processors.", valueName: "loops"))
  var loops = 1

  @Flag(help: "Print the report as JSON.")
  var json = false

  @OptionGroup(title: "Schema") var schema: SchemaOptions
  @OptionGroup(title: "Server") var server: ServerOptions

  func validate() throws {
    if let rate = self.rate, !(rate > 0 && rate <= 10_000_000) {
      throw ValidationError("--rate is from 0 to 10,000,000 calls a second")
    }
    if let callers = self.callers {
      guard (1...1_000_000).contains(callers) else {
        throw ValidationError("--callers is from 1 to 1,000,000")
      }
      guard self.rate == nil else {
        throw ValidationError(
          "give either --rate or --callers: calls begin at a rate, or one after the other"
        )
      }
    }
    guard (1...1_024).contains(self.loops) else { throw ValidationError("--loops is from 1 to 1,024") }
    if let count = self.count, count < 1 { throw ValidationError("--count is at least 1") }
    if let count = self.connections, count < 1 { throw ValidationError("--connections is at least 1") }
  }

  func run() async throws {
    try await Failure.reported {
      let address = try ServiceAddress(method: self.request.url)
      try self.server.check(for: address.host)
      let method = try await CalledMethod(at: address, self.schema, self.server)
      let encoded = try await Session.run(Session(host: address.host, self.server)) {
        try await self.encoded(method.descriptor, try method.types($0))
      }
      var configuration = try self.server.httpConfiguration(
        for: address.host,
        needsDuplex: method.needsDuplex(self.server)
      )
      configuration.eventLoops = self.loops
      configuration.limits.http1ConnectionsPerAddress = self.connections ?? max(self.closedCallers, 100)
      if let count = self.connections { configuration.limits.http2ConnectionsPerAddress = count }
      if self.request.data.isEmpty { ByteSource.noteUnreadInput() }
      let report = try await self.measure(encoded, configuration, address.host)
      if self.request.data.isEmpty { ByteSource.noteUnreadInput() }
      Console.output(try self.json ? report.json() : report.text)
      if report.failures > 0 { throw ExitCode(1) }
    }
  }

  private func encoded(_ method: MethodDescriptor, _ types: MessageTypes) async throws -> EncodedMethod {
    var messages = try RequestMessages(self.request.data)
    let request = try await messages.only(method.input, types)
    return try EncodedMethod(method, request, isJSON: self.request.codec == .json)
  }

  private var closedCallers: Int { self.callers ?? 32 }

  private var plan: LoadPlan {
    LoadPlan(
      kind: self.rate.map { .open(rate: $0) } ?? .closed(callers: self.closedCallers),
      duration: self.duration?.duration ?? (self.count == nil ? .seconds(10) : nil),
      count: self.count,
      ramp: self.ramp?.duration ?? .zero
    )
  }

  /// How long an interrupted load waits for the calls in flight, which are cancelled then.
  private static let patience = Duration.seconds(1)

  private func measure(
    _ method: EncodedMethod,
    _ configuration: NIOHTTPClient.Configuration,
    _ host: String
  ) async throws -> LoadReport {
    let httpClient = NIOHTTPClient(configuration: configuration)
    var server = self.server
    // A server that never answers must not keep the load from its end.
    server.timeout = server.timeout ?? TimeSpan(argument: "30s")
    let config = self.request.clientConfig(for: host, server)
    let client = ProtocolClient(httpClient: httpClient, config: config)
    let options = try self.server.callOptions()
    let run = LoadRun(self.plan, on: client.taskExecutors) { await method.measuredCall(client, options) }
    let calls = Task { await run.run() }
    let interrupt = Interrupt {
      run.stop()
      Task {
        try? await Task.sleep(for: Self.patience)
        calls.cancel()
      }
    }
    let watch = Task { await self.watch(run) }
    await calls.value
    let duration = run.elapsed
    watch.cancel()
    var series = await watch.value
    series.addRest(run.takeResults(), at: duration)
    interrupt.stop()
    let endpoints = await httpClient.snapshots().flatMap(\.endpoints).filter { $0.startedCalls > 0 }
    await httpClient.shutdown(within: .seconds(1))
    return LoadReport(duration: duration, series: series, endpoints: endpoints)
  }

  /// Collects the results of each second, and shows them on terminals.
  private func watch(_ run: LoadRun) async -> LoadSeries {
    let isLive = Console.isErrorTerminal && !self.json
    var series = LoadSeries()
    var last = Duration.zero
    while !Task.isCancelled {
      try? await Task.sleep(for: .seconds(1))
      guard !Task.isCancelled else { break }
      let time = run.elapsed
      series.add(run.takeResults(), at: time, over: time - last)
      last = time
      if isLive, let point = series.points.last {
        Console.status(
          "\(self.plan.progress(at: time, ended: series.total.count))  \(LoadReport.number(point.rate)) calls/s  "
            + "p50 \(point.median.milliseconds)  p99 \((point.p99).milliseconds)"
            + (point.failures > 0 ? "  \(point.failures) failed" : "")
        )
      }
    }
    if isLive { Console.status("") }
    return series
  }
}
