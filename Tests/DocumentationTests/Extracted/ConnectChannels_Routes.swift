// Extracted from Sources/ConnectChannels/ConnectChannels.docc/Routes.md by `make generate`.

import ConnectChannels

private func ConnectChannels_Routes_1() async throws {
  let stable = Cluster(endpoints: [Endpoint("10.0.0.1:8080")].compactMap { $0 })
  let canary = Cluster(endpoints: [Endpoint("10.0.1.1:8080")].compactMap { $0 }, balancing: .roundRobin)

  let split = [WeightedCluster(name: "stable", weight: 90), WeightedCluster(name: "canary", weight: 10)]
  let testers = RouteMatch(headers: [HeaderMatch("x-canary", .exact("yes"))])
  let routing = Routing(
    routes: [
      Route(testers, to: "canary"),
      Route(RouteMatch(path: .prefix("/shop.Search/")), to: split, timeout: .seconds(2)),
      Route(to: "stable"),
    ],
    clusters: ["stable": stable, "canary": canary]
  )

  var configuration = ChannelConfiguration()
  configuration.routing = routing
  _ = stable
  _ = canary
  _ = split
  _ = testers
  _ = routing
  _ = configuration
}
