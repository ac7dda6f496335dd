internal import NIOCore

/// Elements by time, the earliest first; those of the same time in the order in which they came. A binary heap.
struct TimerHeap<Element> {
  struct Entry {
    var time: NIODeadline
    var element: Element
    fileprivate var order: UInt64

    fileprivate func precedes(_ other: Entry) -> Bool {
      self.time < other.time || (self.time == other.time && self.order < other.order)
    }
  }

  private var entries: [Entry] = []
  private var nextOrder: UInt64 = 0

  var count: Int { self.entries.count }
  var first: Entry? { self.entries.first }

  mutating func insert(_ element: Element, at time: NIODeadline) {
    self.entries.append(Entry(time: time, element: element, order: self.nextOrder))
    self.nextOrder += 1
    self.siftUp(self.entries.count - 1)
  }

  mutating func removeFirst() {
    guard let last = self.entries.popLast(), !self.entries.isEmpty else { return }
    self.entries[0] = last
    self.siftDown(0)
  }

  mutating func removeAll(where isUnwanted: (Element) -> Bool) {
    self.entries.removeAll { isUnwanted($0.element) }
    for index in stride(from: self.entries.count / 2 - 1, through: 0, by: -1) { self.siftDown(index) }
  }

  private mutating func siftUp(_ start: Int) {
    var index = start
    while index > 0 {
      let parent = (index - 1) / 2
      guard self.entries[index].precedes(self.entries[parent]) else { return }
      self.entries.swapAt(index, parent)
      index = parent
    }
  }

  private mutating func siftDown(_ start: Int) {
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
