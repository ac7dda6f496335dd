import Connect
import ConnectTesting
import ConnectXDS
import SwiftProtobuf
import Synchronization

/// A small control plane: ADS, state of the world, of one listener and its clusters. All clients get all resources.
final class ControlPlane: Sendable {
  private typealias Request = Envoy_Service_Discovery_V3_DiscoveryRequest
  private typealias Response = Envoy_Service_Discovery_V3_DiscoveryResponse

  private struct State {
    /// By type and name.
    var resources: [String: [String: Google_Protobuf_Any]] = [:]
    var version = 0
    /// What wakes up streams: a request; nil if there are other resources.
    var streams: [AsyncStream<Request?>.Continuation] = []
  }

  private let state = Mutex(State())

  var method: ServerMethod {
    let path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
    let spec = MethodSpec<Request, Response>(path: path, streamType: .bidirectionalStream)
    return ServerMethod(spec) { requests, responses, _ in
      let (events, continuation) = AsyncStream.makeStream(of: Request?.self)
      self.state.withLock { $0.streams.append(continuation) }
      async let reading: Void = {
        defer { continuation.finish() }
        for try await request in requests { continuation.yield(request) }
      }()
      var wanted: [String: [String]] = [:]
      for await request in events {
        let types = request.map { [$0.typeURL] } ?? Array(wanted.keys)
        // With the same names as before, the client only says that it has accepted a response.
        if let request,
          wanted.updateValue(request.resourceNames, forKey: request.typeURL) == request.resourceNames
        {
          continue
        }
        for type in types { try await responses.send(self.response(type)) }
      }
      try await reading
    }
  }

  private func response(_ type: String) -> Response {
    self.state.withLock { state in
      state.version += 1
      return .with {
        $0.typeURL = type
        $0.versionInfo = "\(state.version)"
        $0.nonce = "\(state.version)"
        $0.resources = (state.resources[type] ?? [:]).values.map(\.self)
      }
    }
  }

  private func set(_ name: String, _ message: some Message) throws {
    let any = try Google_Protobuf_Any(message: message)
    let streams = self.state.withLock { state in
      state.resources[any.typeURL, default: [:]][name] = any
      return state.streams
    }
    for stream in streams { stream.yield(nil) }
  }

  /// Sends calls to clusters by these weights.
  func route(_ weights: [String: Int]) throws {
    typealias Manager = Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpConnectionManager
    typealias Router = Envoy_Extensions_Filters_Http_Router_V3_Router
    Google_Protobuf_Any.register(messageType: Manager.self)
    Google_Protobuf_Any.register(messageType: Router.self)
    let shares = weights.map { #"{"name": "\#($0)", "weight": \#($1)}"# }.joined(separator: ", ")
    let text = """
      {"name": "orders", "apiListener": {"apiListener": {
        "@type": "type.googleapis.com/\(Manager.protoMessageName)",
        "routeConfig": {"virtualHosts": [{"domains": ["*"], "routes": [
          {"match": {"prefix": ""}, "route": {"weightedClusters": {"clusters": [\(shares)]}}}
        ]}]},
        "httpFilters": [
          {"name": "router", "typedConfig": {"@type": "type.googleapis.com/\(Router.protoMessageName)"}}
        ]
      }}}
      """
    try self.set("orders", Envoy_Config_Listener_V3_Listener(jsonString: text))
  }

  /// A cluster of servers at these ports.
  func add(_ cluster: String, ports: [Int]) throws {
    let text = #"{"name": "\#(cluster)", "type": "EDS", "edsClusterConfig": {"edsConfig": {"ads": {}}}}"#
    try self.set(cluster, Envoy_Config_Cluster_V3_Cluster(jsonString: text))
    let servers = ports.map { port in
      #"{"endpoint": {"address": {"socketAddress": {"address": "127.0.0.1", "portValue": \#(port)}}}}"#
    }
    let locality = """
      {"locality": {"zone": "here"}, "loadBalancingWeight": 1, "lbEndpoints": [\(servers.joined(separator: ", "))]}
      """
    let endpoints = #"{"clusterName": "\#(cluster)", "endpoints": [\#(locality)]}"#
    try self.set(cluster, Envoy_Config_Endpoint_V3_ClusterLoadAssignment(jsonString: endpoints))
  }
}
