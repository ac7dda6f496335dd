/// The names of a policy's children, and which endpoint belongs to which of them.
struct ChildNames {
  private let indices: [String: Int]
  private let count: Int
  private let place: TreePlace
  /// An endpoint of the last selection that belongs to no child, and how many endpoints there were.
  private var stray: (endpoint: Endpoint, total: Int)?

  /// - Parameter names: In their order. Of equal names, the first gets the endpoints.
  init(_ names: [String], at place: TreePlace) {
    self.indices = Dictionary(zip(names, 0...), uniquingKeysWith: { first, _ in first })
    self.count = names.count
    self.place = place
  }

  /// The endpoints by child. Those that belong to no child are left out.
  func group<Element>(_ elements: [Element], by endpoint: (Element) -> Endpoint) -> [[Element]] {
    var groups: [[Element]] = Array(repeating: [], count: self.count)
    var last: (name: String?, index: Int?) = (nil, nil)
    for element in elements {
      let name = endpoint(element).childName(at: self.place.depth)
      // Endpoints of a child mostly come one after the other.
      if name != last.name { last = (name, name.flatMap { self.indices[$0] }) }
      if let index = last.index { groups[index].append(element) }
    }
    return groups
  }

  /// The endpoints of an answer by child.
  mutating func groupSelected(_ endpoints: [Endpoint]) -> [[Endpoint]] {
    let stray = endpoints.first { endpoint in
      endpoint.childName(at: self.place.depth).flatMap { self.indices[$0] } == nil
    }
    self.stray = stray.map { ($0, endpoints.count) }
    return self.group(endpoints) { $0 }
  }

  /// The endpoints that belong to no child, of a list that was not selected here.
  func strays(in endpoints: [BalancedEndpoint]) -> [EndpointID] {
    endpoints.lazy.filter { $0.endpoint.childName(at: self.place.depth).flatMap { self.indices[$0] } == nil }
      .map(\.id)
  }

  /// Why there is no endpoint for calls.
  var emptyReason: String {
    let names = self.indices.sorted { $0.value < $1.value }.map(\.key)
    guard !names.isEmpty else { return "the policy has no children; give it at least one" }
    guard let stray = self.stray else { return "there are no addresses to connect to" }
    let (name, level) = (stray.endpoint.childName(at: self.place.depth), self.place.depth)
    return "of \(stray.total) endpoints none belongs to a child: \(stray.endpoint) has "
      + (name.map { "the name \"\($0)\"" } ?? "no name") + ", and the children are "
      + names.prefix(10).joined(separator: ", ") + (names.count > 10 ? ", …" : "")
      + "; set path[\(level)] or zone of the endpoints to one of these names"
  }
}
