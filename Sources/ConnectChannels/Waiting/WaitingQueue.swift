/// A first-in, first-out queue whose elements can also leave from the middle, all in constant time.
///
/// It is a doubly linked list in an array. Vacant nodes are reused. Memory follows the longest queue there was, and
/// cancelled elements leave nothing behind.
struct WaitingQueue<Element> {
  /// The handle of one element. It is never valid again once the element has left.
  struct Handle: Hashable, Sendable {
    fileprivate var index: Int
    fileprivate var generation: UInt64
  }

  private struct Node {
    var element: Element?
    var generation: UInt64
    var previous: Int
    var next: Int
  }

  private static var none: Int { -1 }

  private var nodes: [Node] = []
  private var vacant: [Int] = []
  private var head = Self.none
  private var tail = Self.none
  private var nextGeneration: UInt64 = 0

  private(set) var count = 0

  var isEmpty: Bool { self.count == 0 }

  mutating func append(_ element: Element) -> Handle {
    let generation = self.nextGeneration
    self.nextGeneration += 1
    let node = Node(element: element, generation: generation, previous: self.tail, next: Self.none)
    let index: Int
    if let reused = self.vacant.popLast() {
      index = reused
      self.nodes[index] = node
    } else {
      index = self.nodes.count
      self.nodes.append(node)
    }
    if self.tail == Self.none { self.head = index } else { self.nodes[self.tail].next = index }
    self.tail = index
    self.count += 1
    return Handle(index: index, generation: generation)
  }

  /// The oldest element, which leaves.
  mutating func popFirst() -> Element? {
    self.head == Self.none ? nil : self.unlink(self.head)
  }

  /// All elements, the oldest first, which leave.
  mutating func takeAll() -> [Element] {
    var elements: [Element] = []
    while let element = self.popFirst() { elements.append(element) }
    return elements
  }

  /// The element with this handle, which leaves; nil if it has left before.
  mutating func remove(_ handle: Handle) -> Element? {
    guard self.nodes.indices.contains(handle.index),
      self.nodes[handle.index].generation == handle.generation,
      self.nodes[handle.index].element != nil
    else { return nil }
    return self.unlink(handle.index)
  }

  private mutating func unlink(_ index: Int) -> Element? {
    let element = self.nodes[index].element
    let (previous, next) = (self.nodes[index].previous, self.nodes[index].next)
    if previous == Self.none { self.head = next } else { self.nodes[previous].next = next }
    if next == Self.none { self.tail = previous } else { self.nodes[next].previous = previous }
    self.nodes[index].element = nil
    self.count -= 1
    if self.count == 0 {
      // Gives back the memory of a long queue, once it is empty.
      let isSmall = self.nodes.count <= 64
      self.nodes.removeAll(keepingCapacity: isSmall)
      self.vacant.removeAll(keepingCapacity: isSmall)
    } else {
      self.vacant.append(index)
    }
    return element
  }
}
