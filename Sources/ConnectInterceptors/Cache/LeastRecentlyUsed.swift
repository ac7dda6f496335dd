/// Values of a limited total cost. If there is no room, the least recently used are removed. Every operation takes
/// constant time.
struct LeastRecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Node: Sendable {
    let key: Key
    var value: Value
    var cost: Int
    /// The neighbours, used later and used earlier.
    var newer: Int?
    var older: Int?
  }

  private let maximumCost: Int
  private var indices: [Key: Int] = [:]
  /// Nil where a value was removed.
  private var nodes: [Node?] = []
  private var free: [Int] = []
  private var newest: Int?
  private var oldest: Int?
  private(set) var cost = 0

  init(maximumCost: Int) {
    self.maximumCost = maximumCost
  }

  var count: Int { self.indices.count }

  /// The value of `key`, which counts as used.
  mutating func value(for key: Key) -> Value? {
    guard let index = self.indices[key] else { return nil }
    self.unlink(index)
    self.linkAsNewest(index)
    return self.nodes[index]?.value
  }

  /// Stores a value in place of the key's previous value.
  ///
  /// - Returns: The removed values, perhaps with the new value itself.
  mutating func insert(_ value: Value, for key: Key, cost: Int) -> [Value] {
    var gone: [Value] = []
    if let old = self.remove(key) { gone.append(old) }
    guard cost <= self.maximumCost else { return gone + [value] }
    while self.cost + cost > self.maximumCost, let oldest = self.oldest.flatMap({ self.nodes[$0] }) {
      if let old = self.remove(oldest.key) { gone.append(old) }
    }
    let node = Node(key: key, value: value, cost: cost)
    let index: Int
    if let reused = self.free.popLast() {
      index = reused
      self.nodes[index] = node
    } else {
      index = self.nodes.count
      self.nodes.append(node)
    }
    self.indices[key] = index
    self.cost += cost
    self.linkAsNewest(index)
    return gone
  }

  mutating func remove(_ key: Key) -> Value? {
    guard let index = self.indices.removeValue(forKey: key), let node = self.nodes[index] else { return nil }
    self.unlink(index)
    self.nodes[index] = nil
    self.free.append(index)
    self.cost -= node.cost
    return node.value
  }

  /// - Returns: The previous contents.
  mutating func removeAll() -> LeastRecentlyUsed {
    defer { self = LeastRecentlyUsed(maximumCost: self.maximumCost) }
    return self
  }

  private mutating func unlink(_ index: Int) {
    guard let node = self.nodes[index] else { return }
    if let newer = node.newer { self.nodes[newer]?.older = node.older } else { self.newest = node.older }
    if let older = node.older { self.nodes[older]?.newer = node.newer } else { self.oldest = node.newer }
    self.nodes[index]?.newer = nil
    self.nodes[index]?.older = nil
  }

  private mutating func linkAsNewest(_ index: Int) {
    self.nodes[index]?.older = self.newest
    if let newest = self.newest { self.nodes[newest]?.newer = index } else { self.oldest = index }
    self.newest = index
  }
}
