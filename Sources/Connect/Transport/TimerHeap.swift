/// Elements by time, the earliest first; those of the same time in the order in which they came. A binary heap.
///
/// Inlinable, since executors of other modules use it in each call.
package struct TimerHeap<Time: Comparable, Element> {
  package struct Entry {
    package var time: Time
    package var element: Element
    @usableFromInline var order: UInt64

    @inlinable
    init(time: Time, element: Element, order: UInt64) {
      self.time = time
      self.element = element
      self.order = order
    }

    @inlinable
    func precedes(_ other: Entry) -> Bool {
      self.time < other.time || (self.time == other.time && self.order < other.order)
    }
  }

  @usableFromInline var entries: [Entry] = []
  @usableFromInline var nextOrder: UInt64 = 0

  @inlinable
  package init() {}

  @inlinable
  package var count: Int { self.entries.count }

  @inlinable
  package var first: Entry? { self.entries.first }

  /// In no particular order.
  @inlinable
  package var elements: [Element] { self.entries.map(\.element) }

  @inlinable
  package mutating func insert(_ element: Element, at time: Time) {
    self.entries.append(Entry(time: time, element: element, order: self.nextOrder))
    self.nextOrder += 1
    self.siftUp(self.entries.count - 1)
  }

  @inlinable
  package mutating func removeFirst() {
    guard let last = self.entries.popLast(), !self.entries.isEmpty else { return }
    self.entries[0] = last
    self.siftDown(0)
  }

  @inlinable
  package mutating func removeAll(where isUnwanted: (Element) -> Bool) {
    self.entries.removeAll { isUnwanted($0.element) }
    for index in stride(from: self.entries.count / 2 - 1, through: 0, by: -1) { self.siftDown(index) }
  }

  @inlinable
  mutating func siftUp(_ start: Int) {
    var index = start
    while index > 0 {
      let parent = (index - 1) / 2
      guard self.entries[index].precedes(self.entries[parent]) else { return }
      self.entries.swapAt(index, parent)
      index = parent
    }
  }

  @inlinable
  mutating func siftDown(_ start: Int) {
    var index = start
    while true {
      var smallest = index
      for child in (2 * index + 1)...(2 * index + 2) where child < self.entries.count {
        if self.entries[child].precedes(self.entries[smallest]) { smallest = child }
      }
      guard smallest != index else { return }
      self.entries.swapAt(index, smallest)
      index = smallest
    }
  }
}
