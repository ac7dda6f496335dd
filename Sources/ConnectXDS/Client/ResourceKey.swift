internal import Connect

/// A resource that is asked for.
struct ResourceKey: Sendable, Hashable {
  var type: ResourceType
  var name: ResourceName
}

extension ResourceKey: Comparable {
  /// By type, then by name.
  static func < (left: ResourceKey, right: ResourceKey) -> Bool {
    left.type == right.type ? left.name < right.name : left.type.rank < right.type.rank
  }
}

extension ResourceType {
  /// Its place among the types: those that name others come first.
  fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

extension ResourceKey {
  /// A resource by its name as a target or another resource has it.
  ///
  /// - Throws: ``ConnectError`` if the text is no name (`invalid_argument`), or if nobody is responsible for it
  ///   (`failed_precondition`).
  init(_ type: ResourceType, _ text: String, in bootstrap: XDSBootstrap) throws(ConnectError) {
    do throws(ResourceName.Problem) {
      self.init(type: type, name: try ResourceName(text, of: type))
    } catch {
      throw ConnectError(
        code: .invalidArgument,
        message: "the name of the \(type.noun) \(text) cannot be used: it \(error.text)"
      )
    }
    if let authority = self.name.authority, bootstrap.authorities[authority] == nil {
      throw ConnectError(
        code: .failedPrecondition,
        message: "the \(type.noun) \(text) has the authority \"\(authority)\", "
          + "which is not in the bootstrap's \"authorities\""
      )
    }
  }
}

extension XDSBootstrap {
  /// The servers of an authority, each once; nil for resources with names of the old style.
  func servers(of authority: String?) -> [Server] {
    let own = authority.flatMap { self.authorities[$0]?.servers } ?? []
    var known: Set<Server> = []
    return (own.isEmpty ? self.servers : own).filter { known.insert($0).inserted }
  }
}

extension ResourceType {
  /// The type whose URL a response has; nil for types that this client does not know.
  init?(url: String) {
    // Like gRPC, which compares what follows the prefix.
    guard let type = Self.allCases.first(where: { $0.url == url || $0.messageName == url }) else {
      return nil
    }
    self = type
  }

  /// For messages.
  var noun: String {
    switch self {
    case .listener: "listener"
    case .routeConfiguration: "route configuration"
    case .cluster: "cluster"
    case .endpoints: "endpoints resource"
    }
  }
}
