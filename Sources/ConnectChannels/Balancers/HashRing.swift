/// The points of endpoints on the circle of 64-bit hashes, as Envoy and gRPC place them (gRFC A42).
struct HashRing: Sendable {
  /// Ascending.
  private(set) var hashes: [UInt64] = []
  /// The index of the endpoint of each hash.
  private(set) var owners: [UInt32] = []
  /// The first entry at or after each multiple of 2^`shift`. Hashes are spread evenly, so that few entries lie between
  /// two of them, and a search needs about two steps.
  private var starts: [UInt32] = []
  private var shift: UInt64 = 0

  /// - Parameters:
  ///   - members: The name of each endpoint and its weight, of which 0 counts as 1. The order does not matter for
  ///     the places of the hashes.
  ///   - minimum: How many entries the ring has at least, so that the number of each endpoint fits its weight.
  ///   - maximum: How many entries it has at most. With more endpoints than that, some get no call. If it is equal to
  ///     `minimum`, the ring is that of gRPC and Envoy.
  init(_ members: [(key: String, weight: UInt32)], minimum: Int, maximum: Int) {
    guard !members.isEmpty, maximum > 0 else { return }
    let weights = members.map { Double(max(1, $0.weight)) }
    let total = weights.reduce(0, +)
    let least = (weights.min() ?? 1) / total
    // A whole number of entries for the endpoint with the smallest weight, if they are not too many.
    let size = Self.size(
      members: total / (weights.max() ?? 1),
      minimum: Double(minimum),
      maximum: Double(maximum)
    )
    let share = least * size
    let whole = Double(Int(share)) < share ? Double(Int(share) + 1) : share
    let scale = min(whole / least, Double(maximum))
    var entries: [(hash: UInt64, owner: UInt32)] = []
    entries.reserveCapacity(Int(scale) + 1)
    var target = 0.0
    var text: [UInt8] = []
    // In the order of names, so that clients with lists in other orders have the same ring.
    for owner in members.indices.sorted(by: { members[$0].key < members[$1].key }) {
      target += scale * weights[owner] / total
      text.removeAll(keepingCapacity: true)
      text.append(contentsOf: members[owner].key.utf8)
      text.append(UInt8(ascii: "_"))
      let prefix = text.count
      var number = 0
      while Double(entries.count) < target, entries.count < maximum {
        text.removeSubrange(prefix...)
        text.append(contentsOf: String(number).utf8)
        entries.append((text.withUnsafeBytes { XXH64.hash($0) }, UInt32(owner)))
        number += 1
      }
    }
    entries.sort {
      $0.hash != $1.hash ? $0.hash < $1.hash : members[Int($0.owner)].key < members[Int($1.owner)].key
    }
    self.hashes = entries.map(\.hash)
    self.owners = entries.map(\.owner)
    self.fillStarts()
  }

  /// How many entries the ring should have.
  ///
  /// gRPC and Envoy use the minimum for any number of members. If one of four leaves, a quarter of the others' entries
  /// are new. Keys that could stay move to the new entries: more than a third of all keys move. Here the entries of a
  /// member decrease slowly, in proportion to `1 / (members + c)`. Two members share the minimum. More members approach
  /// the maximum, or four times the minimum. If one of N equal members leaves, less than 1/N + 0.1 of the keys move.
  ///
  /// - Parameter members: The sum of the weights in relation to the largest one.
  private static func size(members: Double, minimum: Double, maximum: Double) -> Double {
    let limit = max(minimum, min(maximum, 4 * minimum))
    return max(minimum, minimum * limit * members / (members * minimum + 2 * (limit - minimum)))
  }

  private mutating func fillStarts() {
    // From 2 to 2^23 parts, about one entry in each.
    let bits = max(1, UInt64.bitWidth - (self.hashes.count - 1).leadingZeroBitCount)
    self.shift = UInt64(UInt64.bitWidth - bits)
    self.starts.reserveCapacity(1 << bits)
    var entry = 0
    for part in 0..<(UInt64(1) << UInt64(bits)) {
      while entry < self.hashes.count, self.hashes[entry] < part << self.shift { entry += 1 }
      self.starts.append(UInt32(entry))
    }
  }

  var count: Int { self.hashes.count }

  /// The first entry at or after `hash`, going round at the end. The ring must not be empty.
  func index(for hash: UInt64) -> Int {
    var index = Int(self.starts[Int(truncatingIfNeeded: hash &>> self.shift)])
    while index < self.hashes.count, self.hashes[index] < hash { index += 1 }
    return index == self.hashes.count ? 0 : index
  }
}
