import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

@testable import ConnectChannels

/// A unary call of a `ProtocolClient` through a ``FakeFleet``'s channel.
final class RoutedCall {
  private final class Outcome: Sendable {
    let response = Mutex<ResponseMessage<Int>?>(nil)
  }

  private let fleet: FakeFleet
  private let handle: CallHandle
  private let outcome = Outcome()

  /// Starts it and lets happen what does not take time.
  init(
    _ fleet: FakeFleet,
    _ headers: Headers = [:],
    path: String = "/pkg.Service/Get",
    waitForReady: Bool? = nil,
    hash: UInt64? = nil,
    interceptors: [InterceptorFactory] = [],
    through httpClient: (any HTTPClientInterface)? = nil
  ) {
    var config = ProtocolClientConfig(host: "http://fleet.test", codec: JSONCodec())
    config.interceptors = interceptors
    let client = ProtocolClient(
      httpClient: httpClient ?? ChannelTransport(channel: fleet.channel),
      config: config
    )
    var options = CallOptions(headers: headers)
    options.waitForReady = waitForReady
    if let hash { options.context[RoutingHash.self] = hash }
    self.fleet = fleet
    let method = MethodSpec<Int, Int>(codablePath: path, streamType: .unary)
    self.handle = client.unary(method, 1, options: options) { [outcome] response in
      outcome.response.withLock { $0 = response }
    }
    fleet.executor.runUntilIdle()
  }

  /// Nil while the call goes on.
  var response: ResponseMessage<Int>? { self.outcome.response.withLock { $0 } }

  var hasSucceeded: Bool { self.response?.message == 1 }

  func cancel() {
    self.handle.cancel()
    self.fleet.executor.runUntilIdle()
  }
}

extension FakeStream {
  func answer() {
    self.respond(["content-type": ["application/json"]], bytes: ByteBuffer(string: "1"))
    self.end([:])
  }

  func refuse() {
    let body = ByteBuffer(string: #"{"code":"unavailable"}"#)
    self.respond(["content-type": ["application/json"]], status: 503, bytes: body)
    self.end([:])
  }
}

extension Cluster {
  /// A cluster of these addresses.
  init(_ addresses: String..., balancing: BalancingPolicy? = nil) {
    self.init(endpoints: addresses.compactMap(Endpoint.init), balancing: balancing)
  }
}

extension FakeFleet {
  func route(_ routes: [Route], _ clusters: [String: Cluster], serviceConfig: String? = nil) {
    self.resolver.update(Routing(routes: routes, clusters: clusters), serviceConfig: serviceConfig)
    self.executor.runUntilIdle()
  }

  /// Where the call went that began last.
  var lastAddress: String? { self.network.connections.last { !$0.streams.isEmpty }?.address }

  var snapshot: ChannelSnapshot { self.executor.sync { ChannelSnapshot(self.channel) } }
}
