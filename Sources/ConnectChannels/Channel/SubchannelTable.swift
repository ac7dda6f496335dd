/// The subchannels of a channel: those of the balancer's list, and those that have left it.
struct SubchannelTable {
  /// A subchannel that has not left the list. Nothing holds a slot weakly, unlike a subchannel, so that calls take few steps to
  /// hold it.
  final class Slot {
    let subchannel: Subchannel

    fileprivate init(_ subchannel: Subchannel) {
      self.subchannel = subchannel
    }
  }

  /// In the order of the balancer's list.
  var list: [Subchannel] = []
  /// The endpoints that the balancer does not need, as of its last decision.
  var resting: [EndpointID] = []
  /// Those that have left the list and still have streams.
  private(set) var retired: [ObjectIdentifier: Subchannel] = [:]
  /// By slot; nil if the slot is vacant.
  private var slots: [Slot?] = []
  private var ids = EndpointIDs()

  subscript(id: EndpointID) -> Subchannel? { self.slot(of: id)?.subchannel }

  func slot(of id: EndpointID) -> Slot? {
    guard id.slot < self.slots.count, let slot = self.slots[id.slot], slot.subchannel.id == id else {
      return nil
    }
    return slot
  }

  /// Whether an endpoint has calls, or calls wait for a connection to it.
  var haveCalls: Bool {
    self.retired.values.contains { $0.callCount > 0 }
      || self.list.contains { $0.callCount > 0 || !$0.pool.state.waiting.isEmpty }
  }

  /// How many calls wait for connections to endpoints.
  var waitingCount: Int { self.list.reduce(0) { $0 + $1.pool.state.waiting.count } }

  /// The subchannels of these endpoints, without those that the balancer does not need.
  func needed(_ ids: [EndpointID]) -> [Subchannel] {
    ids.compactMap { self[$0] }.filter { !$0.pool.state.growth.limits.isUnneeded }
  }

  /// A new call waits: endpoints that wait for a backoff without a call connect at once.
  func connectResting() {
    for subchannel in self.list where subchannel.race.waitsForCall {
      subchannel.race.connect(isForCall: true)
    }
  }

  /// Adds a subchannel, which is not in the list yet.
  mutating func add(_ make: (EndpointID) -> Subchannel) -> Subchannel {
    let id = self.ids.make()
    let subchannel = make(id)
    let slot = Slot(subchannel)
    if id.slot == self.slots.count { self.slots.append(slot) } else { self.slots[id.slot] = slot }
    return subchannel
  }

  /// The subchannel has left the list.
  mutating func retire(_ subchannel: Subchannel) {
    self.slots[subchannel.id.slot] = nil
    self.ids.release(subchannel.id)
    self.retired[ObjectIdentifier(subchannel)] = subchannel
  }

  /// A subchannel that has left the list has no connection left.
  mutating func remove(_ subchannel: Subchannel) {
    self.retired.removeValue(forKey: ObjectIdentifier(subchannel))
  }
}
