internal import Connect
internal import SwiftProtobuf

/// What is known of a resource that somebody watches.
struct CachedResource {
  private(set) var status = XDSSnapshot.Status.requested
  /// What is in use.
  private(set) var resource: Resource?
  private(set) var message: Google_Protobuf_Any?
  private(set) var version = ""
  /// When ``resource`` came, since 1970.
  private(set) var time: Duration?
  /// The server that ``resource`` came from.
  private(set) var server: XDSBootstrap.Server?
  private(set) var refusal: XDSSnapshot.Refusal?
  /// Whether the server has deleted it, and it stays in use.
  var isDeletionIgnored = false
  /// What the watchers have heard in place of a resource.
  private(set) var problem: ConnectError?
  /// By number, in the order in which they came.
  var watches: [UInt64: DiscoveryWatch] = [:]

  /// Whether a server may be needed for it.
  var isUnknown: Bool { self.status == .requested }

  /// What a new watch hears at once; nil for nothing yet.
  var state: ResourceState? {
    if let resource = self.resource { return .present(resource) }
    // A server that could not be reached may be reachable by now.
    return self.isUnknown ? nil : self.problem.map { .missing($0) }
  }

  /// A version that can be used.
  ///
  /// - Returns: Whether watches have to hear of it: it differs from the one in use, or its loads are reported to another server.
  mutating func accept(
    _ resource: Resource,
    _ message: Google_Protobuf_Any,
    version: String,
    time: Duration,
    from server: XDSBootstrap.Server
  ) -> Bool {
    self.status = .acknowledged
    self.refusal = nil
    self.problem = nil
    self.version = version
    let isMoved = self.server != server
    self.server = server
    guard self.resource != resource else {
      if isMoved, case .cluster(let cluster) = resource { return cluster.reportsLoads }
      return false
    }
    self.resource = resource
    self.message = message
    self.time = time
    return true
  }

  /// A version that cannot be used. An earlier one stays in use.
  mutating func refuse(_ refusal: XDSSnapshot.Refusal, _ error: ConnectError) {
    self.status = .refused
    self.refusal = refusal
    if self.resource == nil { self.problem = error }
  }

  /// It does not exist, or not any more.
  mutating func remove(_ error: ConnectError) {
    self.status = .doesNotExist
    self.resource = nil
    self.message = nil
    self.version = ""
    self.time = nil
    self.refusal = nil
    self.problem = error
  }

  /// No server can be reached, and nothing is known.
  ///
  /// - Returns: Whether this is news.
  mutating func fail(_ error: ConnectError) -> Bool {
    guard self.isUnknown else { return false }
    defer { self.problem = error }
    return self.problem?.message != error.message
  }
}

/// A watch of a resource. Confined to the client's executor.
final class DiscoveryWatch: ResourceWatch {
  private weak var client: DiscoveryClient?
  let key: ResourceKey?
  let number: UInt64
  private var report: (@Sendable (ResourceState) -> Void)?

  /// - Parameter key: Nil if the name is none: then there is nothing to watch.
  init(
    _ key: ResourceKey?,
    _ number: UInt64,
    _ client: DiscoveryClient,
    _ report: @escaping @Sendable (ResourceState) -> Void
  ) {
    self.key = key
    self.number = number
    self.client = client
    self.report = report
  }

  func hear(_ state: ResourceState) {
    self.report?(state)
  }

  func cancel() {
    guard self.report.take() != nil, let key = self.key else { return }
    self.client?.cancel(self, of: key)
  }
}
