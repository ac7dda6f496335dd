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

  /// Finds the children of endpoints one after the other. Endpoints of a child mostly come together, so that few names are hashed.
  private struct Search {
    let names: ChildNames
    private var last: (name: String?, index: Int?) = (nil, nil)

    init(_ names: ChildNames) {
      self.names = names
    }

    mutating func index(of endpoint: borrowing Endpoint) -> Int? {
      let name = endpoint.childName(at: self.names.place.depth)
      if name != self.last.name { self.last = (name, name.flatMap { self.names.indices[$0] }) }
      return self.last.index
    }
  }

  /// The endpoints by child. Those that belong to no child are left out.
  func group(_ endpoints: [BalancedEndpoint]) -> [[BalancedEndpoint]] {
    var groups: [[BalancedEndpoint]] = Array(repeating: [], count: self.count)
    var search = Search(self)
    for endpoint in endpoints {
      if let index = search.index(of: endpoint.endpoint) { groups[index].append(endpoint) }
    }
    return groups
  }

  /// The endpoints of an answer by child.
  mutating func groupSelected(_ endpoints: [Endpoint]) -> [[Endpoint]] {
    var groups: [[Endpoint]] = Array(repeating: [], count: self.count)
    var search = Search(self)
    var stray: Endpoint?
    for endpoint in endpoints {
      if let index = search.index(of: endpoint) {
        groups[index].append(endpoint)
      } else if stray == nil {
        stray = endpoint
      }
    }
    self.stray = stray.map { ($0, endpoints.count) }
    return groups
  }

  /// The endpoints that belong to no child, of a list that was not selected here.
  func strays(in endpoints: [BalancedEndpoint]) -> [EndpointID] {
    var search = Search(self)
    var strays: [EndpointID] = []
    for endpoint in endpoints where search.index(of: endpoint.endpoint) == nil { strays.append(endpoint.id) }
    return strays
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
