internal import SwiftProtobuf

/// What is wrong with a resource.
struct ResourceProblem: Error, Sendable, Hashable {
  /// Each with the path of its field, as in `virtual_hosts[0].domains[1]: ...`.
  var problems: [String]
}

/// Checks resources, and makes values of them. Has no state.
///
/// What is refused is what gRPC's C++ client refuses. All problems of a resource are found, so that its authors can correct them
/// at once. Nothing that a server sends may trap.
struct ResourceDecoder: Sendable {
  let bootstrap: XDSBootstrap

  /// A resource of a response.
  struct Decoded: Sendable, Hashable {
    /// Nil if not even the name could be read.
    var name: String?
    var resource: Result<Resource, ResourceProblem>
    /// As it came, without the wrapper `envoy.service.discovery.v3.Resource`.
    var message: Google_Protobuf_Any
  }

  /// Decodes a resource of a response.
  func decode(_ message: Google_Protobuf_Any, as type: ResourceType) -> Decoded {
    let wrapperName = Envoy_Service_Discovery_V3_Resource.protoMessageName
    guard Self.typeName(message.typeURL) == wrapperName else { return self.unwrapped(message, as: type) }
    guard let wrapper = try? Envoy_Service_Discovery_V3_Resource(serializedBytes: message.value) else {
      return Self.failed(nil, "could not parse the wrapper \(wrapperName)", message)
    }
    let name = wrapper.name.isEmpty ? nil : wrapper.name
    guard wrapper.hasResource else {
      return Self.failed(name, "the wrapper \(wrapperName) has no resource", message)
    }
    var decoded = self.unwrapped(wrapper.resource, as: type)
    if let name { decoded.name = name }
    return decoded
  }

  private func unwrapped(_ message: Google_Protobuf_Any, as type: ResourceType) -> Decoded {
    let actual = Self.typeName(message.typeURL)
    guard actual == type.messageName else {
      return Self.failed(
        nil,
        "incorrect resource type \"\(actual)\" (should be \"\(type.messageName)\")",
        message
      )
    }
    let problems = ProblemList()
    let place = FieldPlace(problems)
    let resource: Resource
    let name: String
    do {
      switch type {
      case .listener:
        let listener = try Envoy_Config_Listener_V3_Listener(serializedBytes: message.value)
        name = listener.name
        resource = .listener(ListenerDecoder().decode(listener, at: place))
      case .routeConfiguration:
        let routes = try Envoy_Config_Route_V3_RouteConfiguration(serializedBytes: message.value)
        name = routes.name
        resource = .routeConfiguration(RouteConfigurationDecoder(routes, at: place).decode(routes, at: place))
      case .cluster:
        let cluster = try Envoy_Config_Cluster_V3_Cluster(serializedBytes: message.value)
        name = cluster.name
        resource = .cluster(ClusterDecoder(bootstrap: self.bootstrap).decode(cluster, at: place))
      case .endpoints:
        let endpoints = try Envoy_Config_Endpoint_V3_ClusterLoadAssignment(serializedBytes: message.value)
        name = endpoints.clusterName
        resource = .endpoints(EndpointsDecoder().decode(endpoints, at: place))
      }
    } catch {
      return Self.failed(nil, "could not parse \(type.messageName)", message)
    }
    let result: Result<Resource, ResourceProblem> =
      if let problem = problems.problem { .failure(problem) } else { .success(resource) }
    return Decoded(name: name, resource: result, message: message)
  }

  private static func failed(_ name: String?, _ problem: String, _ message: Google_Protobuf_Any) -> Decoded {
    Decoded(name: name, resource: .failure(ResourceProblem(problems: [problem])), message: message)
  }

  private static func typeName(_ url: String) -> String {
    let prefix = "type.googleapis.com/"
    return url.hasPrefix(prefix) ? String(url.dropFirst(prefix.count)) : url
  }
}
