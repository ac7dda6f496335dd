internal import Synchronization

/// Where a call goes, beside its origin: an authority that it asks for, and the cluster that a route has chosen. Requests hold it
/// apart from themselves, since few calls have one: for others it is one empty word.
package final class CallDestination: Sendable {
  /// What the server is told as its host; nil for the origin's.
  package let authority: String?
  /// Nil if no route has chosen one.
  package let cluster: CallCluster?
  /// The number of the cluster. To read it takes no reference to the cluster, which takes more steps than others: it is
  /// referenced weakly, too.
  package let clusterNumber: UInt64?
  /// What the route hashes the call by; nil for nothing.
  package let hash: UInt64?

  /// Where a call with this authority goes; nil without an authority.
  package init?(_ authority: String?) {
    guard let authority else { return nil }
    self.authority = authority
    self.cluster = nil
    self.clusterNumber = nil
    self.hash = nil
  }

  /// Where a call goes that a route has led to a cluster.
  package init(authority: String? = nil, cluster: CallCluster, hash: UInt64? = nil) {
    self.authority = authority
    self.cluster = cluster
    self.clusterNumber = cluster.number
    self.hash = hash
  }

  /// The same cluster with another authority.
  fileprivate convenience init?(_ other: CallDestination?, authority: String?) {
    guard let other, let cluster = other.cluster else {
      self.init(authority)
      return
    }
    self.init(authority: authority, cluster: cluster, hash: other.hash)
  }
}

/// A cluster that routes lead to. Routes and the calls that they have led there hold it. The cluster ends once nothing holds it.
package final class CallCluster: Sendable {
  private static let count = Atomic<UInt64>(0)

  /// Of all clusters of the process, none has the same one: unlike an address, it is not used again.
  package let number = CallCluster.count.wrappingAdd(1, ordering: .relaxed).newValue
  package let name: String
  /// The origin whose routes lead there.
  package let origin: Origin
  private let onRelease: @Sendable () -> Void

  /// - Parameter onRelease: Called once nothing holds the cluster any more, on any thread. It must not wait.
  package init(_ name: String, of origin: Origin, onRelease: @escaping @Sendable () -> Void) {
    self.name = name
    self.origin = origin
    self.onRelease = onRelease
  }

  deinit { self.onRelease() }
}

extension HTTPStreamRequest {
  /// Sets the authority, and leaves the cluster as it is.
  mutating func setAuthority(_ authority: String?) {
    self.destination = CallDestination(self.destination, authority: authority)
  }

  /// Leads the request to the cluster of `destination`. Its own authority stays.
  package mutating func follow(_ destination: CallDestination?) {
    guard let own = self.destination?.authority else {
      // Most calls have no authority of their own. They share the destination of their route.
      self.destination =
        destination?.authority == nil ? destination : CallDestination(destination, authority: nil)
      return
    }
    if self.destination?.cluster === destination?.cluster { return }
    self.destination = CallDestination(destination, authority: own)
  }
}
