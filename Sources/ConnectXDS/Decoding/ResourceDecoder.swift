internal import SwiftProtobuf

/// What is wrong with a resource.
struct ResourceProblem: Error, Sendable, Hashable {
  /// Each with the path of its field, as in `route_config.virtual_hosts[0].domains[1]: ...`.
  var problems: [String]
}

/// Checks resources, and makes values of them. Has no state.
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
    Decoded(name: nil, resource: .failure(ResourceProblem(problems: ["not implemented"])), message: message)
  }
}
