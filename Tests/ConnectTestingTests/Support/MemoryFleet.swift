import Connect
import ConnectChannels
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization

/// Servers in memory, in virtual time. Each answers an echo with its address; 5 seconds later if the request says
/// `slow`.
final class MemoryFleet: Sendable {
  /// The result of a call: the text of each response, or its error.
  final class Call: Sendable {
    private let all = Mutex<[String]>([])

    var outcomes: [String] { self.all.withLock { $0 } }

    func add(_ response: ResponseMessage<EchoResponse>) {
      let outcome =
        response.message?.payload.text ?? response.error?.message.map { "\(response.code): \($0)" }
        ?? "\(response.code)"
      self.all.withLock { $0.append(outcome) }
    }
  }

  /// Records the events of the channels.
  final class Log: ChannelObserver {
    private let entries = Mutex<[String]>([])

    var all: [String] { self.entries.withLock { $0 } }

    func count(_ entry: String) -> Int { self.all.count { $0 == entry } }

    func channel(to origin: Origin, did event: ChannelEvent) {
      let entry: String? =
        switch event {
        case .connectionOpened(let endpoint): "opened \(endpoint)"
        case .connectionFailed(let endpoint, _): "failed \(endpoint)"
        case .connectionClosed(let endpoint): "closed \(endpoint)"
        default: nil
        }
      if let entry { self.entries.withLock { $0.append(entry) } }
    }
  }

  static let addresses = (1...3).compactMap { EndpointAddress("10.0.0.\($0):80") }
  static let names = MemoryFleet.addresses.map(\.description)

  let executor = VirtualExecutor()
  let resolver = PushResolver()
  let log = Log()
  let transport: InMemoryTransport
  let client: ProtocolClient
  /// The server of each handler that was cancelled.
  let cancelled = Mutex<[String]>([])

  init(
    _ addresses: [EndpointAddress] = MemoryFleet.addresses,
    balancing: BalancingPolicy? = .roundRobin,
    network: NetworkProtocol = .connect,
    _ configure: (inout ChannelConfiguration) -> Void = { _ in }
  ) {
    var channel = ChannelConfiguration(
      resolver: self.resolver,
      balancing: balancing,
      idleTimeout: .seconds(Int64.max),
      observer: self.log
    )
    configure(&channel)
    self.transport = InMemoryTransport(executor: self.executor, channel: channel)
    self.client = ProtocolClient(
      httpClient: self.transport,
      config: ProtocolClientConfig(host: "http://fleet.test", networkProtocol: network)
    )
    self.resolve(addresses)
    self.transport.onUnary(TestMethods.echo) { [weak self] request, context in
      let name = context.serverAddress.map { "\($0)" } ?? "no address"
      if request.payload.text == "slow" {
        do {
          try await context.sleep(for: .seconds(5))
        } catch {
          if Task.isCancelled { self?.cancelled.withLock { $0.append(name) } }
          throw error
        }
      }
      return .with { $0.payload.text = name }
    }
  }

  func resolve(_ addresses: [EndpointAddress], serviceConfig: String? = nil) {
    self.resolver.update(addresses.map { Endpoint($0) }, serviceConfig: serviceConfig)
    self.executor.runUntilIdle()
  }

  /// Makes a call and runs everything that is due without advancing the time.
  @discardableResult
  func call(_ text: String = "", options: CallOptions = CallOptions()) -> Call {
    let call = Call()
    self.client.unary(TestMethods.echo, .with { $0.payload.text = text }, options: options) { call.add($0) }
    self.executor.runUntilIdle()
    return call
  }

  /// Makes `count` calls one after the other, and counts each outcome.
  func outcomes(of count: Int) -> [String: Int] {
    (0..<count).flatMap { _ in self.call().outcomes }.reduce(into: [:]) { $0[$1, default: 0] += 1 }
  }

  func advance(by duration: Duration) {
    self.executor.advance(by: duration)
  }
}
