import Connect
import ConnectTesting
import Logging
import XCTest

@testable import ConnectChannels

/// A channel whose servers may be reached over TCP and over QUIC, in virtual time.
final class TwoWayFleet {
  static let address = "10.0.0.1:443"

  let executor = VirtualExecutor()
  let tcp: FakeNetwork
  let quic: FakeNetwork
  let alternatives: SharedAlternatives
  /// The network that the client is in.
  let network = Network()
  let origin = Origin(scheme: .https, host: "fleet.test", port: 443)
  let channel: OriginChannel
  private let resolver = PushResolver()

  init(
    _ addresses: [String] = [TwoWayFleet.address],
    knowsHTTP3: Bool = false,
    limits: ConnectionLimits = ConnectionLimits(),
    cluster: String? = nil,
    _ configure: (inout ChannelConfiguration) -> Void = { _ in }
  ) {
    let network = self.network
    self.alternatives = SharedAlternatives(network: { network.number })
    self.tcp = FakeNetwork(self.executor)
    self.quic = FakeNetwork(self.executor)
    self.quic.standard = .accepts(.http3)
    let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    var configuration = ChannelConfiguration(resolver: self.resolver)
    configure(&configuration)
    var environment = ChannelEnvironment(
      origin: self.origin,
      executor: self.executor,
      opener: AlternativesOpener(
        self.origin,
        tcp: self.tcp,
        quic: self.quic,
        alternatives: self.alternatives,
        on: self.executor,
        logger: logger
      ),
      resolver: self.resolver,
      configuration: configuration,
      limits: limits,
      logger: logger,
      seed: 1
    )
    environment.cluster = cluster
    self.channel = OriginChannel(environment)
    if knowsHTTP3 { self.learn() }
    self.resolver.update(addresses.compactMap(Endpoint.init))
    self.executor.runUntilIdle()
  }

  func learn(port: Int = 443) {
    self.alternatives.learn(
      port: port,
      of: self.origin,
      timeToLive: .seconds(80_000),
      now: self.executor.now
    )
    self.executor.runUntilIdle()
  }

  @discardableResult
  func call() -> FakeCall {
    let call = FakeCall()
    let request = HTTPStreamRequest(method: .post, target: "/a.B/C", headers: [:], body: .streamed)
    self.executor.sync { call.start(on: self.channel, request) }
    self.executor.runUntilIdle()
    return call
  }

  func run(_ work: () -> Void) {
    self.executor.sync(work)
    self.executor.runUntilIdle()
  }

  func advance(by duration: Duration) { self.executor.advance(by: duration) }

  /// Ends all streams of the network, with this `alt-svc` field.
  func answer(_ network: FakeNetwork, altSvc: String? = nil) {
    self.run {
      for stream in network.connections.flatMap(\.streams) {
        stream.respond(altSvc.map { ["alt-svc": [$0]] } ?? [:])
        stream.end()
      }
    }
  }

  var openTCP: [FakeConnection] { self.tcp.connections.filter { !$0.isClosed } }
  var openQUIC: [FakeConnection] { self.quic.connections.filter { !$0.isClosed } }
  var isHTTP3Usable: Bool { self.isHTTP3Usable(at: Self.address) }

  func isHTTP3Usable(at server: String) -> Bool {
    self.alternatives.port(for: self.origin, at: endpointAddress(server), now: self.executor.now) != nil
  }

  func shutDown(file: StaticString = #filePath, line: UInt = #line) {
    let isFinished = Flag()
    self.channel.shutDown(within: .seconds(5)) { isFinished.raise() }
    self.executor.runUntilIdle()
    self.advance(by: .seconds(6))
    XCTAssertTrue(isFinished.isRaised, file: file, line: line)
    XCTAssertEqual(self.openTCP.count + self.openQUIC.count, 0, file: file, line: line)
  }

  /// Touched where the executor runs, and where it rests.
  final class Network: @unchecked Sendable {
    var number = 1
  }

  /// Touched where the executor runs, and where it rests.
  private final class Flag: @unchecked Sendable {
    private(set) var isRaised = false
    func raise() { self.isRaised = true }
  }
}
