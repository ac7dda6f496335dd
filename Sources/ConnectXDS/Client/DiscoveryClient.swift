internal import Connect
internal import ConnectChannels
internal import Logging
internal import SwiftProtobuf

/// Gets resources from control planes, and keeps those that are watched. Confined to its executor.
///
/// Servers: for each authority, the first of its servers is asked. If it cannot be reached while a resource is unknown, the next
/// one is asked, too, and so on (gRFC A71). Once an earlier one answers, the later ones are left.
final class DiscoveryClient: ResourceSource {
  typealias Decode = (_ message: Google_Protobuf_Any, _ type: ResourceType) -> ResourceDecoder.Decoded

  /// The resources of one authority, and who is asked for them.
  final class AuthorityState {
    let servers: [XDSBootstrap.Server]
    /// The first ones of ``servers``; the last one of these is in use.
    var planes: [ControlPlane] = []
    var resources: [ResourceKey: CachedResource] = [:]

    init(servers: [XDSBootstrap.Server]) {
      self.servers = servers
    }
  }

  let bootstrap: XDSBootstrap
  let environment: DiscoveryEnvironment
  let decode: Decode
  /// By name; nil for resources with names of the old style.
  private(set) var authorities: [String?: AuthorityState] = [:]
  private var planes: [XDSBootstrap.Server: ControlPlane] = [:]
  private var lastWatch: UInt64 = 0
  private var isShutDown = false

  init(
    _ bootstrap: XDSBootstrap,
    _ environment: DiscoveryEnvironment,
    decode: @escaping Decode
  ) {
    self.bootstrap = bootstrap
    self.environment = environment
    self.decode = decode
  }

  // MARK: - Watches

  func watch(
    _ type: ResourceType,
    _ name: String,
    _ report: @escaping @Sendable (ResourceState) -> Void
  ) -> any ResourceWatch {
    self.lastWatch += 1
    do throws(ConnectError) {
      guard !self.isShutDown else {
        throw ConnectError(code: .unavailable, message: "the xDS client was shut down")
      }
      let key = try ResourceKey(type, name, in: self.bootstrap)
      let watch = DiscoveryWatch(key, self.lastWatch, self, report)
      self.begin(watch, of: key)
      return watch
    } catch {
      let watch = DiscoveryWatch(nil, self.lastWatch, self, report)
      self.notify([watch], .missing(error))
      return watch
    }
  }

  private func begin(_ watch: DiscoveryWatch, of key: ResourceKey) {
    let state = self.authority(key.name.authority)
    if let cached = state.resources[key] {
      state.resources[key]?.watches[watch.number] = watch
      if let known = cached.state {
        self.notify([watch], known)
      } else if let failure = state.planes.last?.failure {
        self.notify([watch], .missing(self.error(failure)))
      }
      return
    }
    var cached = CachedResource()
    cached.watches[watch.number] = watch
    state.resources[key] = cached
    for plane in state.planes { plane.subscribe(to: key) }
    if state.planes.last.map({ $0.failure != nil }) ?? true { self.addPlanes(to: state) }
    if let failure = state.planes.last?.failure { self.fail([key], of: state, self.error(failure)) }
  }

  private func authority(_ name: String?) -> AuthorityState {
    if let state = self.authorities[name] { return state }
    let state = AuthorityState(servers: self.bootstrap.servers(of: name))
    self.authorities[name] = state
    return state
  }

  /// Nobody listens to the watch any more.
  func cancel(_ watch: DiscoveryWatch, of key: ResourceKey) {
    let authority = key.name.authority
    guard let state = self.authorities[authority],
      state.resources[key]?.watches.removeValue(forKey: watch.number) != nil,
      state.resources[key]?.watches.isEmpty ?? false
    else { return }
    // What nobody watches is not kept.
    for plane in state.planes { plane.unsubscribe(from: key) }
    state.resources[key] = nil
    if state.resources.isEmpty { self.authorities[authority] = nil }
  }

  /// Tells watches soon, in the order in which they began.
  func notify(_ watches: some Sequence<DiscoveryWatch>, _ state: ResourceState) {
    let watches = watches.sorted { $0.number < $1.number }
    guard !watches.isEmpty else { return }
    self.environment.executor.later {
      for watch in watches { watch.hear(state) }
    }
  }

  // MARK: - Servers

  /// All authorities, in the order of their names: what follows from one event has the same order each time.
  var states: [AuthorityState] {
    self.authorities.sorted { ($0.key ?? "", $0.key == nil ? 0 : 1) < ($1.key ?? "", $1.key == nil ? 0 : 1) }
      .map(\.value)
  }

  private func plane(for server: XDSBootstrap.Server) -> ControlPlane {
    if let plane = self.planes[server] { return plane }
    let plane = ControlPlane(server, self.environment, client: self)
    self.planes[server] = plane
    return plane
  }

  /// Asks further servers, up to the first that is not known to be unreachable.
  ///
  /// - Returns: Whether there is one.
  @discardableResult
  private func addPlanes(to state: AuthorityState) -> Bool {
    while state.planes.count < state.servers.count {
      let plane = self.plane(for: state.servers[state.planes.count])
      for key in state.resources.keys.sorted() { plane.subscribe(to: key) }
      state.planes.append(plane)
      if plane.failure == nil { return true }
      self.environment.logger.info("the control plane \(plane.server.uri) is known to be unreachable")
    }
    return false
  }

  /// A server cannot be reached.
  func cannotReach(_ plane: ControlPlane, _ failure: ConnectError) {
    let error = self.error(failure)
    for state in self.states where state.planes.last === plane {
      guard state.resources.values.contains(where: \.isUnknown), !self.addPlanes(to: state) else { continue }
      self.fail(state.resources.keys.sorted(), of: state, error)
    }
  }

  /// Says why nothing is known of resources, where that is so.
  private func fail(_ keys: [ResourceKey], of state: AuthorityState, _ error: ConnectError) {
    for key in keys where state.resources[key]?.fail(error) ?? false {
      if let watches = state.resources[key]?.watches { self.notify(watches.values, .missing(error)) }
    }
  }

  /// A server has answered: those after it are not needed any more.
  func fallForward(to plane: ControlPlane) {
    for state in self.states where state.planes.last !== plane {
      guard let index = state.planes.firstIndex(where: { $0 === plane }) else { continue }
      self.environment.logger.info("the control plane \(plane.server.uri) is in use again")
      for later in state.planes[(index + 1)...] {
        for key in state.resources.keys.sorted() { later.unsubscribe(from: key) }
      }
      state.planes.removeSubrange((index + 1)...)
    }
  }

  /// Nothing is asked of a server any more.
  func isUnused(_ plane: ControlPlane) {
    if self.planes[plane.server] === plane { self.planes[plane.server] = nil }
  }

  // MARK: - Resources

  /// Changes what is known of a resource, if somebody watches it.
  @discardableResult
  func update<Value>(_ key: ResourceKey, _ change: (inout CachedResource) -> Value) -> Value? {
    guard let state = self.authorities[key.name.authority], var cached = state.resources[key] else {
      return nil
    }
    let value = change(&cached)
    state.resources[key] = cached
    return value
  }

  func resource(_ key: ResourceKey) -> CachedResource? {
    self.authorities[key.name.authority]?.resources[key]
  }

  /// Whether there is no version of a resource in use.
  func lacks(_ key: ResourceKey) -> Bool { self.resource(key)?.resource == nil }

  /// A server has not sent resources in time.
  func isMissing(_ keys: [ResourceKey], at plane: ControlPlane) {
    for key in keys {
      guard let cached = self.resource(key), cached.resource == nil, cached.status != .doesNotExist else {
        continue
      }
      self.remove(
        key,
        "the control plane \(plane.server.uri) has not sent it within \(AnswerTimers.patience)"
      )
    }
  }

  /// A resource does not exist, or not any more.
  func remove(_ key: ResourceKey, _ reason: String) {
    let message = "the \(key.type.noun) \(key.name.text) does not exist: \(reason)"
    let error = self.error(ConnectError(code: .notFound, message: message))
    self.environment.logger.info("\(message)")
    self.update(key) { cached in
      cached.remove(error)
      self.notify(cached.watches.values, .missing(error))
    }
  }

  /// With this client's name, by which a control plane's operators find it.
  func error(_ error: ConnectError) -> ConnectError {
    guard !self.bootstrap.node.id.isEmpty else { return error }
    var error = error
    error.message = "\(error.message ?? "\(error.code)") (node ID: \(self.bootstrap.node.id))"
    return error
  }

  // MARK: - End

  /// Ends all streams. Watches hear nothing more.
  func shutDown() {
    self.isShutDown = true
    let planes = self.planes.sorted { $0.key.uri < $1.key.uri }
    self.planes = [:]
    self.authorities = [:]
    for (_, plane) in planes { plane.close() }
  }
}
