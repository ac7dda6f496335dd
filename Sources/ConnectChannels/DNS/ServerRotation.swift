/// In which order the servers are asked: in turn, each several times.
struct ServerRotation {
  private let servers: [Int]
  private let attempts: Int
  private var index = 0

  /// - Parameters:
  ///   - servers: Indices, in the order in which they are asked; at least one.
  ///   - attempts: How often each of them is asked: 1 to 5.
  init(servers: [Int], attempts: Int) {
    self.servers = servers
    self.attempts = min(max(1, attempts), 5)
  }

  /// The server to ask now.
  var server: Int { self.servers[self.index % self.servers.count] }

  /// Goes on to the next server.
  ///
  /// - Returns: False if there is none.
  mutating func advance() -> Bool {
    self.index += 1
    return self.index < self.attempts * self.servers.count
  }

  mutating func restart() {
    self.index = 0
  }
}
