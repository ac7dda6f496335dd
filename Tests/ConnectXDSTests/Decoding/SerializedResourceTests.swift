internal import Connect
internal import ConnectChannels
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

@testable internal import ConnectXDS

/// Resources like those that Istio sends, with the fields of Envoy's whole messages: what is not read here does not disturb.
final class SerializedResourceTests: XCTestCase {
  private let service = "outbound|7070||orders.shop.svc.cluster.local"

  private func decode(_ text: String, as type: ResourceType) throws -> ResourceDecoder.Decoded {
    let message = Google_Protobuf_Any.with {
      $0.typeURL = type.url
      $0.value = Data(base64Encoded: text) ?? Data()
    }
    XCTAssertGreaterThan(message.value.count, 100)
    return ResourceText.decoder.decode(message, as: type)
  }

  func testListener() throws {
    let decoded = try self.decode(SerializedResources.listener, as: .listener)
    XCTAssertEqual(decoded.name, "orders.shop.svc.cluster.local:7070")
    XCTAssertEqual(
      try decoded.resource.get(),
      .listener(
        ListenerResource(
          routes: .named(self.service),
          filters: [
            .init(name: "envoy.filters.http.fault", kind: .fault(FaultSettings())),
            .init(name: "envoy.filters.http.router", kind: .router),
          ]
        )
      )
    )
  }

  func testRoutes() throws {
    let decoded = try self.decode(SerializedResources.routes, as: .routeConfiguration)
    XCTAssertEqual(decoded.name, self.service)
    let canary = RouteForward(
      shares: [.init(cluster: "outbound|7070|canary|orders", weight: 1)],
      maximumStreamDuration: .zero,
      retry: MethodConfig.RetryPolicy(
        maximumAttempts: 3,
        initialBackoff: .milliseconds(25),
        maximumBackoff: .milliseconds(250),
        backoffMultiplier: 2,
        retryableCodes: [.unavailable, .canceled]
      )
    )
    let shares: [RouteForward.Share] = [
      .init(cluster: "outbound|7070|v1|orders", weight: 90),
      .init(cluster: "outbound|7070|v2|orders", weight: 10),
    ]
    let header = HeaderMatch("x-canary", .exact("yes"))
    XCTAssertEqual(
      try decoded.resource.get(),
      .routeConfiguration(
        RouteConfigurationResource(virtualHosts: [
          .init(
            domains: ["orders.shop.svc.cluster.local", "orders:7070"],
            routes: [
              RouteResource(
                match: RouteMatch(path: .prefix("/"), headers: [header]),
                action: .forward(canary)
              ),
              RouteResource(match: RouteMatch(path: .prefix("/")), action: .forward(.init(shares: shares))),
            ]
          )
        ])
      )
    )
  }

  func testCluster() throws {
    let decoded = try self.decode(SerializedResources.cluster, as: .cluster)
    XCTAssertEqual(decoded.name, self.service)
    let name = ClusterSecurity.NameMatcher(rule: .exact("spiffe://cluster.local/ns/shop/sa/orders"))
    XCTAssertEqual(
      try decoded.resource.get(),
      .cluster(
        ClusterResource(
          kind: .endpoints(self.service),
          policy: .byLocality(.roundRobin),
          maximumCalls: 500,
          outlierDetection: OutlierDetection(
            interval: .seconds(5),
            successRate: nil,
            failurePercentage: .init(enforcement: 50)
          ),
          security: ClusterSecurity(roots: "roots", identity: "own", acceptedNames: [name]),
          reportsLoads: true
        )
      )
    )
  }

  func testEndpoints() throws {
    let decoded = try self.decode(SerializedResources.endpoints, as: .endpoints)
    XCTAssertEqual(decoded.name, self.service)
    func endpoint(_ address: String, weight: UInt32) throws -> Endpoint {
      var endpoint = try XCTUnwrap(Endpoint(address))
      endpoint.weight = weight
      return endpoint
    }
    XCTAssertEqual(
      try decoded.resource.get(),
      .endpoints(
        EndpointsResource(priorities: [
          [
            .init(
              name: XDSLocality(region: "eu", zone: "eu-1"),
              weight: 2,
              endpoints: [try endpoint("10.1.0.4:7070", weight: 1)]
            )
          ],
          [
            .init(
              name: XDSLocality(region: "us", zone: "us-1"),
              weight: 1,
              endpoints: [try endpoint("[fd00::7]:7070", weight: 3)]
            )
          ],
        ])
      )
    )
  }
}
