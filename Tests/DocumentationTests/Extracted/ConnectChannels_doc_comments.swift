// Extracted from the doc comments of Sources/ConnectChannels by `make generate`.

import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectLifecycle
import ConnectNIO
import ConnectProtobufC
import ConnectReflection
import ConnectSimulation
import ConnectTesting
import Logging
import NIOCore
import ServiceLifecycle
import XCTest

extension DocComments {
  private func EndpointAddress_1() async throws {
    _ = EndpointAddress("10.0.0.1:80")
    _ = EndpointAddress("[::1]:80")
    _ = EndpointAddress("unix:/run/rpc")
    _ = EndpointAddress("unix-abstract:rpc")
    _ = EndpointAddress("vsock:3:50051")
  }

  private func BalancingPolicy_Tree_1() async throws {
    configuration.channel.balancing = .priority([.init("near", .roundRobin), .init("far", .leastRequest())])
    // In the resolver: Endpoint(addresses: […], path: ["near"])
  }

  private func BalancingPolicy_Tree_2() async throws {
    let policy = BalancingPolicy.weightedTarget([
      .init("stable", weight: 99, .roundRobin), .init("canary", weight: 1, .roundRobin),
    ])
    _ = policy
  }

  private func BalancingPolicy_1() async throws {
    let policy = BalancingPolicy.outlierDetection(.defaults, of: .roundRobin)
    _ = policy
  }

  private func LoadBalancer_1() async throws {
    struct FirstReady: LoadBalancer {
      mutating func update(
        _ endpoints: [BalancedEndpoint],
        in context: inout BalancerContext
      ) -> BalancerDecision {
        let summary = EndpointSummary(endpoints)
        guard let first = summary.ready.first else { return .unready(summary) }
        return BalancerDecision(state: .ready, picker: ConstantPicker(.endpoint(first)), connect: summary.idle)
      }
    }
  }

  private func RoutingHash_1() async throws {
    var options = CallOptions()
    options.context[RoutingHash.self] = userID
    _ = options
  }

  private func ClientSystem_Channels_1() async throws {
    try ClientSystem.bootstrap(interceptors: [], channelObserver: ChannelMetrics())
  }

  private func NameResolver_1() async throws {
    let resolver = PushResolver()
    resolver.update([Endpoint("10.0.0.1:8080"), Endpoint("10.0.0.2:8080")].compactMap { $0 })
    _ = resolver
  }

  private func PollingResolver_1() async throws {
    let resolver = PollingResolver { origin, _, report in
      registry.lookUp(origin.host) { addresses in
        report(.success(ResolverUpdate(endpoints: addresses.map(Endpoint.init), timeToLive: .seconds(60))))
      }
    }
    _ = resolver
  }
}
