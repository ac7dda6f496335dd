/// Names for the priorities of a cluster that stay with their localities over updates, so that a server keeps its connections
/// when its priority changes (gRFC A56).
///
/// A priority has the name that one of its localities was under before. No two priorities share a name.
struct PriorityNames: Sendable {
  /// The number of each priority.
  private(set) var numbers: [Int] = []
  private var next = 0
  /// The localities of each number, as of the last update.
  private var localities: [Int: Set<XDSLocality>] = [:]

  /// - Parameter priorities: The localities of each priority.
  mutating func update(_ priorities: [[XDSLocality]]) {
    var old: [XDSLocality: Int] = [:]
    // In order: of several priorities with a locality, the last one counts, as in gRPC.
    for number in self.numbers {
      for locality in self.localities[number] ?? [] { old[locality] = number }
    }
    var used = Set(self.localities.keys)
    let previous = self.localities
    self.numbers = []
    self.localities = [:]
    for localities in priorities {
      let number: Int
      if let index = localities.firstIndex(where: { old[$0] != nil }), let known = old[localities[index]] {
        number = known
        // Its other localities do not give the same number to a later priority.
        for locality in previous[known] ?? [] { old[locality] = nil }
        for locality in localities { old[locality] = nil }
      } else {
        while used.contains(self.next) { self.next += 1 }
        number = self.next
        self.next += 1
        used.insert(number)
      }
      self.numbers.append(number)
      self.localities[number] = Set(localities)
    }
  }

  /// The name of the part that a number has in the tree of a cluster.
  static func name(of cluster: String, number: Int) -> String {
    "{cluster=\(cluster), child_number=\(number)}"
  }
}
