/// Where a balancer is in a tree of policies.
struct TreePlace: Sendable, Hashable {
  /// How many elements of ``Endpoint/path`` the policies above have used.
  private(set) var depth = 0
  /// The names of the parts that lead to it, the outermost first.
  private(set) var names: [String] = []

  /// The place of a child that is named by ``Endpoint/path``.
  func child(_ name: String) -> TreePlace {
    var place = self.zone(name)
    place.depth += 1
    return place
  }

  /// The place of a zone, which uses no element of the path.
  func zone(_ name: String) -> TreePlace {
    var place = self
    place.names.append(name)
    return place
  }
}

extension Endpoint {
  /// The name of the child that the endpoint belongs to, at this depth of a tree; nil if it has none.
  func childName(at depth: Int) -> String? {
    let path = self.path
    return depth < path.count ? path[depth] : self.zone
  }
}
