internal import Connect

/// The clusters that calls of a channel have gone to last: a few, which are found without hashing a name. Confined to the executor.
final class KnownClusters {
  private static let maximum = 8

  /// Each call reads it, so exclusivity is not checked at run time. That is safe: nothing here calls out.
  @exclusivity(unchecked) private var list: [(number: UInt64, member: ClusterMember)] = []

  /// The cluster of a request; nil if no route of the channel has chosen one, or it is not known.
  func member(for request: HTTPStreamRequest) -> ClusterMember? {
    guard let number = request.destination?.clusterNumber else { return nil }
    for index in self.list.indices where self.list[index].number == number { return self.list[index].member }
    return nil
  }

  /// The channel is in use, and has a cluster that something holds.
  func remember(_ member: ClusterMember, as number: UInt64) {
    if self.list.contains(where: { $0.number == number }) { return }
    if self.list.count >= Self.maximum { self.list = [] }
    self.list.append((number, member))
  }

  /// The clusters may have ended, or the channel is not in use any more.
  func forget() { self.list = [] }
}
