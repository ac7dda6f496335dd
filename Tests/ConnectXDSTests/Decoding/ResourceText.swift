internal import SwiftProtobuf

@testable internal import ConnectXDS

/// Resources in protobuf's text format, as a server would send them.
enum ResourceText {
  /// The types that may be within an `Any` here.
  private static let areTypesKnown: Bool = {
    let types: [any Message.Type] = [
      Envoy_Config_Listener_V3_Listener.self,
      Envoy_Config_Route_V3_FilterConfig.self,
      Envoy_Extensions_Clusters_Aggregate_V3_ClusterConfig.self,
      Envoy_Extensions_Filters_Http_Fault_V3_HTTPFault.self,
      Envoy_Extensions_Filters_Http_Router_V3_Router.self,
      Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpConnectionManager.self,
      Envoy_Extensions_LoadBalancingPolicies_ClientSideWeightedRoundRobin_V3_ClientSideWeightedRoundRobin
        .self,
      Envoy_Extensions_LoadBalancingPolicies_LeastRequest_V3_LeastRequest.self,
      Envoy_Extensions_LoadBalancingPolicies_PickFirst_V3_PickFirst.self,
      Envoy_Extensions_LoadBalancingPolicies_RingHash_V3_RingHash.self,
      Envoy_Extensions_LoadBalancingPolicies_RoundRobin_V3_RoundRobin.self,
      Envoy_Extensions_LoadBalancingPolicies_WrrLocality_V3_WrrLocality.self,
      Envoy_Extensions_TransportSockets_Tls_V3_UpstreamTlsContext.self,
      Udpa_Type_V1_TypedStruct.self,
      Xds_Type_V3_TypedStruct.self,
    ]
    return types.allSatisfy { Google_Protobuf_Any.register(messageType: $0) }
  }()

  /// A resource as it comes over the wire.
  static func message(_ text: String, as type: ResourceType) throws -> Google_Protobuf_Any {
    precondition(self.areTypesKnown)
    let message: any Message =
      switch type {
      case .listener: try Envoy_Config_Listener_V3_Listener(textFormatString: text)
      case .routeConfiguration: try Envoy_Config_Route_V3_RouteConfiguration(textFormatString: text)
      case .cluster: try Envoy_Config_Cluster_V3_Cluster(textFormatString: text)
      case .endpoints: try Envoy_Config_Endpoint_V3_ClusterLoadAssignment(textFormatString: text)
      }
    return try self.onWire(Google_Protobuf_Any(message: message))
  }

  /// The same without what the library remembers of its making.
  static func onWire(_ message: Google_Protobuf_Any) throws -> Google_Protobuf_Any {
    let bytes: [UInt8] = try message.serializedBytes()
    return try Google_Protobuf_Any(serializedBytes: bytes)
  }

  static let decoder = ResourceDecoder(
    bootstrap: XDSBootstrap(
      servers: [XDSBootstrap.Server(uri: "dns:///control", credentials: .insecure)],
      certificateProviders: ["roots": .init(roots: "/roots.pem"), "own": .init(), "other": .init()]
    )
  )

  static func decode(_ text: String, as type: ResourceType) throws -> ResourceDecoder.Decoded {
    self.decoder.decode(try self.message(text, as: type), as: type)
  }

  /// What is wrong with a resource; empty for valid ones.
  static func problems(_ text: String, as type: ResourceType) throws -> [String] {
    switch try self.decode(text, as: type).resource {
    case .success: []
    case .failure(let problem): problem.problems
    }
  }

  static func listener(_ text: String) throws -> ListenerResource? {
    guard case .listener(let listener) = try self.decode(text, as: .listener).resource.get() else {
      return nil
    }
    return listener
  }

  static func routes(_ text: String) throws -> RouteConfigurationResource? {
    let resource = try self.decode(text, as: .routeConfiguration).resource.get()
    guard case .routeConfiguration(let routes) = resource else { return nil }
    return routes
  }

  static func cluster(_ text: String) throws -> ClusterResource? {
    guard case .cluster(let cluster) = try self.decode(text, as: .cluster).resource.get() else { return nil }
    return cluster
  }

  static func endpoints(_ text: String) throws -> EndpointsResource? {
    guard case .endpoints(let endpoints) = try self.decode(text, as: .endpoints).resource.get() else {
      return nil
    }
    return endpoints
  }

  /// A message within an `Any`.
  static func any(_ type: String, _ fields: String = "") -> String {
    "[type.googleapis.com/\(type)] { \(fields) }"
  }

  /// JSON's fields within an `Any`.
  static func typedStruct(_ type: String, _ fields: String = "", of package: String = "xds.type.v3") -> String
  {
    self.any("\(package).TypedStruct", "type_url: 'type.googleapis.com/\(type)' value { \(fields) }")
  }
}
