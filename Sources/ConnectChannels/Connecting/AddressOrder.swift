/// The order in which the addresses of an endpoint are tried.
enum AddressOrder {
  /// Each address once, with the families in turn, beginning with the family of the first address (RFC 8305, section
  /// 4). If one family does not work, the other one comes next.
  static func interleaved(_ addresses: [EndpointAddress]) -> [EndpointAddress] {
    var seen: Set<EndpointAddress> = []
    var families: [EndpointAddress.Family] = []
    var queues: [[EndpointAddress]] = []
    for address in addresses where seen.insert(address).inserted {
      if let index = families.firstIndex(of: address.family) {
        queues[index].append(address)
      } else {
        families.append(address.family)
        queues.append([address])
      }
    }
    guard queues.count > 1 else { return queues.first ?? [] }
    var ordered: [EndpointAddress] = []
    for row in 0..<(queues.map(\.count).max() ?? 0) {
      for queue in queues where row < queue.count { ordered.append(queue[row]) }
    }
    return ordered
  }
}
