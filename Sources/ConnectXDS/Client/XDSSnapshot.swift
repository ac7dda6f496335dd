internal import SwiftProtobuf

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What an ``XDSClient`` asks control planes for, and what it knows: for people who look for a mistake, and for Envoy's tools
/// (gRFC A40, the service CSDS).
public struct XDSSnapshot: Sendable {
  /// How far a client has got with a resource.
  public enum Status: Sendable, Hashable {
    /// It was asked for, and no control plane has answered yet.
    case requested
    /// The control plane has deleted it, or has not sent it within 15 seconds.
    case doesNotExist
    /// The last version is in use.
    case acknowledged
    /// The last version cannot be used. If there is a ``Resource/version``, that one stays in use.
    case refused
  }

  /// A version that cannot be used.
  public struct Refusal: Sendable, Hashable {
    /// As the control plane names it.
    public var version: String
    /// What is wrong with it.
    public var details: String
    /// When it came: the time since 1970 (UTC).
    public var time: Duration

    /// A version that cannot be used.
    public init(version: String, details: String, time: Duration) {
      self.version = version
      self.details = details
      self.time = time
    }
  }

  /// A resource.
  public struct Resource: Sendable, Hashable {
    /// The type, such as `envoy.config.cluster.v3.Cluster`.
    public var type: String
    /// The name.
    public var name: String
    /// How far the client has got with it.
    public var status: Status
    /// The version that is in use, as the control plane names it; nil for none.
    public var version: String?
    /// When the resource in use came: the time since 1970 (UTC); nil for none.
    public var time: Duration?
    /// The last version, if it cannot be used.
    public var refusal: Refusal?
    /// The resource in use, without the fields that this client does not know.
    var message: Google_Protobuf_Any?
  }

  /// By type, then by name.
  public var resources: [Resource]
  let node: Envoy_Config_Core_V3_Node

  /// The same as JSON, in the form of the message `envoy.service.status.v3.ClientStatusResponse`.
  ///
  /// A resource that has an extension of an unknown type is there in base64, as a `google.protobuf.BytesValue`.
  public var json: String {
    XDSResourceTypes.register()
    var config = Envoy_Service_Status_V3_ClientConfig()
    config.node = self.node
    config.genericXdsConfigs = self.resources.map(\.entry)
    var response = Envoy_Service_Status_V3_ClientStatusResponse()
    response.config = [config]
    return (try? response.jsonString()) ?? "{}"
  }
}

extension XDSSnapshot.Resource {
  fileprivate var entry: Envoy_Service_Status_V3_ClientConfig.GenericXdsConfig {
    var entry = Envoy_Service_Status_V3_ClientConfig.GenericXdsConfig()
    entry.typeURL = "type.googleapis.com/\(self.type)"
    entry.name = self.name
    entry.versionInfo = self.version ?? ""
    if let time = self.time { entry.lastUpdated = Google_Protobuf_Timestamp(sinceEpoch: time) }
    if let message = self.message { entry.xdsConfig = message.printable }
    switch self.status {
    case .requested: entry.clientStatus = .requested
    case .doesNotExist: entry.clientStatus = .doesNotExist
    case .acknowledged: entry.clientStatus = .acked
    case .refused: entry.clientStatus = .nacked
    }
    if let refusal = self.refusal {
      entry.errorState.versionInfo = refusal.version
      entry.errorState.details = refusal.details
      entry.errorState.lastUpdateAttempt = Google_Protobuf_Timestamp(sinceEpoch: refusal.time)
    }
    return entry
  }
}

extension Google_Protobuf_Timestamp {
  fileprivate init(sinceEpoch time: Duration) {
    self.init(
      seconds: time.components.seconds,
      nanos: Int32(truncatingIfNeeded: time.components.attoseconds / 1_000_000_000)
    )
  }
}

extension Google_Protobuf_Any {
  /// Itself if it can be written as JSON, else its bytes.
  fileprivate var printable: Google_Protobuf_Any {
    if (try? self.jsonString()) != nil { return self }
    return (try? Google_Protobuf_Any(message: Google_Protobuf_BytesValue(self.value))) ?? self
  }
}

extension XDSSnapshot {
  init(_ client: DiscoveryClient) {
    let resources = client.authorities.values.flatMap(\.resources)
    let sorted = resources.sorted { $0.key < $1.key }
    self.init(
      resources: sorted.map { key, cached in
        XDSSnapshot.Resource(
          type: key.type.messageName,
          name: key.name.text,
          status: cached.status,
          version: cached.resource == nil ? nil : cached.version,
          time: cached.time,
          refusal: cached.refusal,
          message: cached.message
        )
      },
      node: client.environment.node
    )
  }
}

/// Lets resources be written as JSON, with the messages inside of them.
private enum XDSResourceTypes {
  private static let isRegistered: Bool = {
    let types: [any Message.Type] = [
      Envoy_Config_Listener_V3_Listener.self,
      Envoy_Config_Route_V3_RouteConfiguration.self,
      Envoy_Config_Cluster_V3_Cluster.self,
      Envoy_Config_Endpoint_V3_ClusterLoadAssignment.self,
      Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpConnectionManager.self,
      Envoy_Extensions_Filters_Http_Router_V3_Router.self,
      Envoy_Extensions_Filters_Http_Fault_V3_HTTPFault.self,
      Envoy_Extensions_TransportSockets_Tls_V3_UpstreamTlsContext.self,
      Envoy_Extensions_Clusters_Aggregate_V3_ClusterConfig.self,
    ]
    for type in types { Google_Protobuf_Any.register(messageType: type) }
    return true
  }()

  static func register() { _ = self.isRegistered }
}
