import ArgumentParser
import BenchMessages
import Connect
import ConnectChannels
import ConnectHTTP3
import ConnectNIO
import Foundation
import Measuring
import NIOCore
import NIOPosix
import Synchronization

/// This library as the client of a benchmark.
@main
struct ConnectBench: ParsableCommand {
  enum Interface: String, ExpressibleByArgument, CaseIterable {
    case async
    case callback
  }

  enum InterceptorForm: String, ExpressibleByArgument, CaseIterable {
    case closure
    case async
    /// A hook-less interceptor.
    case unused
  }

  @OptionGroup var workload: Workload
  @Option(name: .customLong("protocol"), help: "connect, grpc or grpcWeb.")
  var networkProtocol = "connect"
  @Option(help: "proto or json.") var codec = "proto"
  @Flag(help: "HTTP/1.1 instead of HTTP/2.") var http1 = false
  @Flag(help: "HTTP/3 instead of HTTP/2; needs the roots.") var http3 = false
  @Option(help: "Servers and routes in place of the address: servers, route, mesh, meshOfThree.") var fleet:
    Fleet?
  @Option(help: "Bytes of a datagram of HTTP/3, on a network that carries more than usual.")
  var datagramSize: Int?
  @Option(help: "The server's root certificates; makes the client use TLS.") var roots: String?
  @Option(help: "Which form of the API is used.") var api = Interface.async
  @Flag(help: "Runs async callers on the concurrency pool, not on the client's event loop.") var pool = false
  @Option(help: "On how many event loops calls live.") var loops = 1
  @Flag(help: "What is idle are connections, each to a name of its own, not streams.") var connections = false
  @Option(help: "Interceptors that pass everything on.") var interceptors = 0
  @Option(help: "The form of these interceptors.") var form = InterceptorForm.closure
  @Option(help: "The recommended interceptors: defaults, or all with credentials and a concurrency limit.")
  var recommended: Recommended.Choice?
  @Flag(help: "Compresses requests with gzip.") var gzip = false
  @Flag(help: "Has glibc keep the memory of freed bodies.") var keepsFreedMemory = false

  /// The main thread only waits: callgrind does not bear with an asynchronous main function, whose thread libdispatch ends.
  func run() throws {
    let outcome = Mutex<Result<Void, any Error>>(.success(()))
    let end = DispatchSemaphore(value: 0)
    Task {
      do { try await self.measure() } catch { outcome.withLock { $0 = .failure(error) } }
      end.signal()
    }
    end.wait()
    try outcome.withLock { $0 }.get()
  }

  private func measure() async throws {
    let group: any EventLoopGroup =
      self.loops == 1
      ? MultiThreadedEventLoopGroup.singleton.next()
      : MultiThreadedEventLoopGroup(numberOfThreads: self.loops)
    try await group.next().submit {}.get()
    let emptyProgram = Cost.memory
    let bench = try Bench(options: self, eventLoopGroup: group)
    let meter = Meter(self.workload)
    let report: Report
    if self.workload.kind == .idle {
      report =
        self.connections
        ? try await bench.idleConnections(options: self) : try await bench.idle(above: emptyProgram)
    } else {
      report = try await meter.run { try await bench.work(meter) }
    }
    report.print()
    await bench.httpClient.shutdown(within: .zero)
  }
}

struct Bench: Sendable {
  static let unary = MethodSpec<Connect_Bench_V1_Payload, Connect_Bench_V1_Payload>(
    path: "/connect.bench.v1.BenchService/Unary",
    streamType: .unary
  )
  static let serverStream = MethodSpec<Connect_Bench_V1_Payload, Connect_Bench_V1_Payload>(
    path: "/connect.bench.v1.BenchService/ServerStream",
    streamType: .serverStream
  )
  static let clientStream = MethodSpec<Connect_Bench_V1_Payload, Connect_Bench_V1_Payload>(
    path: "/connect.bench.v1.BenchService/ClientStream",
    streamType: .clientStream
  )
  static let bidi = MethodSpec<Connect_Bench_V1_Payload, Connect_Bench_V1_Payload>(
    path: "/connect.bench.v1.BenchService/Bidi",
    streamType: .bidirectionalStream
  )

  let httpClient: NIOHTTPClient
  let client: ProtocolClient
  /// Where callbacks come, if calls live on one.
  let eventLoop: any EventLoop
  let workload: Workload
  let request: Connect_Bench_V1_Payload
  let usesCallbacks: Bool
  let runsOnPool: Bool

  init(options: ConnectBench, eventLoopGroup: any EventLoopGroup) throws {
    var configuration = NIOHTTPClient.Configuration(version: options.http1 ? .http1Only : .http2Only)
    configuration.limits.http1ConnectionsPerAddress = options.workload.inFlight
    configuration.limits.http2ConnectionsPerAddress = 1
    configuration.limits.waitingCalls = 100_000
    configuration.eventLoops = options.loops
    configuration.keepsFreedMemory = options.keepsFreedMemory
    if options.http3 { configuration.http3 = .alone(HTTP3Configuration(datagramSize: options.datagramSize)) }
    if options.connections, let endpoint = Endpoint("127.0.0.1:\(options.workload.port)") {
      configuration.channel.resolver = StaticResolver([endpoint])
      configuration.tls.serverName = "localhost"
      configuration.timeouts.idle = .seconds(600)
    }
    options.fleet?.configure(&configuration.channel, port: options.workload.port)
    if let roots = options.roots { configuration.tls.trustRoots = .pemFile(roots) }
    self.httpClient = NIOHTTPClient(configuration: configuration, eventLoopGroup: eventLoopGroup)
    let host =
      options.roots == nil
      ? "http://127.0.0.1:\(options.workload.port)" : "https://localhost:\(options.workload.port)"
    self.client = ProtocolClient(
      httpClient: self.httpClient,
      config: ProtocolClientConfig(
        host: host,
        networkProtocol: try Self.networkProtocol(options.networkProtocol),
        codec: options.codec == "json" ? JSONCodec() as any Codec : ProtoCodec(),
        interceptors: Array(repeating: PassThrough.factory(options.form), count: options.interceptors)
          + (options.recommended?.factories ?? []),
        compression: options.gzip
          ? Compression(requests: GzipCompressionPool(), minimumRequestBytes: 0) : .defaults
      )
    )
    self.eventLoop = eventLoopGroup.next()
    self.workload = options.workload
    self.request = .with { $0.data = Data(repeating: UInt8(ascii: "x"), count: options.workload.size) }
    self.usesCallbacks = options.api == .callback
    self.runsOnPool = options.pool
  }

  private static func networkProtocol(_ name: String) throws -> NetworkProtocol {
    switch name {
    case "connect": return .connect
    case "grpc": return .grpc
    case "grpcWeb": return .grpcWeb
    default: throw ValidationError("\(name) is no protocol")
    }
  }

  // MARK: Work

  func work(_ meter: Meter) async throws -> Samples {
    try await withThrowingTaskGroup(of: Samples.self) { group in
      let executors = self.client.taskExecutors
      for index in 0..<self.workload.inFlight {
        group.addTask(executorPreference: self.runsOnPool ? nil : executors[index % executors.count]) {
          switch (self.workload.kind, self.usesCallbacks) {
          case (.unary, false): try await self.unary(meter)
          case (.unary, true): try await CallbackWorker(self, meter).run()
          case (.serverStream, _): try await self.serverStream(meter)
          case (.clientStream, _): try await self.clientStream(meter)
          case (.bidi, _): try await self.bidi(meter)
          case (.idle, _): Samples()
          }
        }
      }
      var all = Samples()
      for try await samples in group { all.add(samples) }
      return all
    }
  }

  private func unary(_ meter: Meter) async throws -> Samples {
    var samples = Samples()
    while meter.isRunning {
      let start = Clock.now
      let message = try await self.client.unary(Self.unary, self.request).get()
      precondition(!message.data.isEmpty)
      if meter.isMeasuring { samples.add(since: start) }
    }
    return samples
  }

  private var streamHeaders: CallOptions {
    var options = CallOptions(headers: ["x-messages": ["\(self.workload.messages)"]])
    if self.workload.framedEach { options.headers["x-frames"] = ["each"] }
    return options
  }

  private func serverStream(_ meter: Meter) async throws -> Samples {
    var samples = Samples()
    while meter.isRunning {
      let start = Clock.now
      var count = 0
      let stream = self.client.serverStream(Self.serverStream, self.request, options: self.streamHeaders)
      for try await message in stream.messages {
        precondition(!message.data.isEmpty)
        count += 1
      }
      precondition(count == self.workload.messages)
      if meter.isMeasuring { samples.add(since: start, count: count) }
    }
    return samples
  }

  private func clientStream(_ meter: Meter) async throws -> Samples {
    var samples = Samples()
    while meter.isRunning {
      let start = Clock.now
      let stream = self.client.clientStream(Self.clientStream)
      for _ in 0..<self.workload.messages { try await stream.send(self.request) }
      _ = try await stream.closeAndReceive().get()
      if meter.isMeasuring { samples.add(since: start, count: self.workload.messages) }
    }
    return samples
  }

  private func bidi(_ meter: Meter) async throws -> Samples {
    var samples = Samples()
    let stream = self.client.bidirectionalStream(Self.bidi)
    var answers = stream.messages.makeAsyncIterator()
    while meter.isRunning {
      let start = Clock.now
      try await stream.send(self.request)
      guard let message = try await answers.next() else { throw ValidationError("the stream ended") }
      precondition(!message.data.isEmpty)
      if meter.isMeasuring { samples.add(since: start) }
    }
    stream.cancel()
    return samples
  }

  /// What a client holds with a connection, and what open streams hold that nothing happens on.
  ///
  /// - Parameter emptyProgram: The memory of the process without a client, in kilobytes.
  func idle(above emptyProgram: Int) async throws -> Report {
    _ = try await self.client.unary(Self.unary, self.request).get()
    let before = Cost.memory
    var streams: [BidirectionalStream<Connect_Bench_V1_Payload, Connect_Bench_V1_Payload>] = []
    for _ in 0..<self.workload.inFlight {
      let stream = self.client.bidirectionalStream(Self.bidi)
      try await stream.send(self.request)
      var answers = stream.messages.makeAsyncIterator()
      _ = try await answers.next()
      streams.append(stream)
    }
    let held = Double(Cost.memory - before)
    let report = Report(fields: [
      ("count", Double(streams.count)), ("kb_per_stream", held / Double(max(streams.count, 1))),
      ("client_kb", Double(before - emptyProgram)),
    ])
    for stream in streams { stream.cancel() }
    return report
  }
}

extension Bench {
  /// What connections hold that nothing happens on any more, each after one call.
  func idleConnections(options: ConnectBench) async throws -> Report {
    var clients: [ProtocolClient] = []
    func open(_ count: Int) async throws {
      for _ in 0..<count {
        let host = "http\(options.roots == nil ? "" : "s")://host-\(clients.count).test:\(self.workload.port)"
        let config = ProtocolClientConfig(host: host, networkProtocol: .connect, codec: ProtoCodec())
        let client = ProtocolClient(httpClient: self.httpClient, config: config)
        _ = try await client.unary(Self.unary, self.request).get()
        clients.append(client)
      }
      try await Task.sleep(for: .seconds(1))
    }
    // What is made once.
    try await open(10)
    let (memory, heap) = (Cost.memory, Cost.heap)
    try await open(self.workload.inFlight)
    let count = Double(max(self.workload.inFlight, 1))
    return Report(fields: [
      ("count", count), ("kb_per_connection", Double(Cost.memory - memory) / count),
      ("heap_kb_per_connection", Double(Cost.heap - heap) / count),
    ])
  }
}

/// Makes unary calls one after the other by callbacks, on the event loop.
///
/// `@unchecked Sendable`: everything happens on the event loop.
private final class CallbackWorker: @unchecked Sendable {
  private let bench: Bench
  private let meter: Meter
  private let end: EventLoopPromise<Samples>
  private var samples = Samples()

  init(_ bench: Bench, _ meter: Meter) {
    self.bench = bench
    self.meter = meter
    self.end = bench.eventLoop.makePromise()
  }

  func run() async throws -> Samples {
    self.bench.eventLoop.execute { self.next() }
    return try await self.end.futureResult.get()
  }

  private func next() {
    guard self.meter.isRunning else {
      self.end.succeed(self.samples)
      return
    }
    let start = Clock.now
    self.bench.client.unary(Bench.unary, self.bench.request) { response in
      if let error = response.error {
        self.end.fail(error)
        return
      }
      if self.meter.isMeasuring { self.samples.add(since: start) }
      self.next()
    }
  }
}
