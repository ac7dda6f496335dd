internal import Synchronization

/// The calls that are in flight to a set of servers, on all event loops.
final class CallsInFlight: Sendable {
  private let number = Atomic<Int>(0)

  var count: Int { self.number.load(ordering: .relaxed) }

  func add() { self.number.wrappingAdd(1, ordering: .relaxed) }
  func remove() { self.number.wrappingSubtract(1, ordering: .relaxed) }
}

/// Counts the calls to the servers of a zone. Shared by all event loops.
final class CallCounter: Sendable {
  private let issued = Atomic<UInt64>(0)
  private let succeeded = Atomic<UInt64>(0)
  private let failed = Atomic<UInt64>(0)
  private let inFlight = Atomic<UInt64>(0)
  /// Those of all zones.
  private let all: CallsInFlight

  init(within all: CallsInFlight) {
    self.all = all
  }

  func begin() {
    self.issued.wrappingAdd(1, ordering: .relaxed)
    self.inFlight.wrappingAdd(1, ordering: .relaxed)
    self.all.add()
  }

  /// A call that has begun is over.
  func end(isSuccess: Bool) {
    if isSuccess {
      self.succeeded.wrappingAdd(1, ordering: .relaxed)
    } else {
      self.failed.wrappingAdd(1, ordering: .relaxed)
    }
    self.inFlight.wrappingSubtract(1, ordering: .relaxed)
    self.all.remove()
  }

  func take() -> CallStatistics.Counts.Zone {
    var zone = CallStatistics.Counts.Zone()
    zone.issued = self.issued.exchange(0, ordering: .relaxed)
    zone.succeeded = self.succeeded.exchange(0, ordering: .relaxed)
    zone.failed = self.failed.exchange(0, ordering: .relaxed)
    zone.inFlight = self.inFlight.load(ordering: .relaxed)
    return zone
  }
}

/// Counts the calls that are dropped for a reason. Shared by all event loops.
final class DropCounter: Sendable {
  private let number = Atomic<UInt64>(0)

  func add() { self.number.wrappingAdd(1, ordering: .relaxed) }
  func take() -> UInt64 { self.number.exchange(0, ordering: .relaxed) }
}

/// A call that waits for a connection to the server that was chosen for it. It counts as in flight, though it has not begun:
/// otherwise any number of calls could wait there, past the limit.
final class QueuedCall {
  private let calls: CallsInFlight

  init(_ calls: CallsInFlight) {
    self.calls = calls
    calls.add()
  }

  deinit { self.calls.remove() }
}

/// Counters by name. Those that nobody else holds go once they have nothing to tell: names come from a control plane, and never
/// end.
struct CounterTable<Counter: AnyObject> {
  private var entries: [(name: String, counter: Counter)] = []

  /// The counter of a name, which there may be already.
  mutating func counter(of name: String, _ make: () -> Counter) -> Counter {
    if let known = self.entries.first(where: { $0.name == name }) { return known.counter }
    let counter = make()
    self.entries.append((name, counter))
    return counter
  }

  /// Takes the counts of each counter.
  ///
  /// - Parameter body: Returns whether the counter has nothing to tell.
  mutating func take(_ body: (String, Counter) -> Bool) {
    var kept: [(name: String, counter: Counter)] = []
    for index in self.entries.indices {
      let isEmpty = body(self.entries[index].name, self.entries[index].counter)
      if !isEmpty || !isKnownUniquelyReferenced(&self.entries[index].counter) {
        kept.append(self.entries[index])
      }
    }
    self.entries = kept
  }
}
