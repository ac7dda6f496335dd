/// What was sent, as long as it is little enough to be kept, so that it can be sent again from the start.
struct ReplayLog<Element> {
  private(set) var elements: [Element] = []
  /// Whether nothing was left out, so that ``elements`` is all that was sent.
  private(set) var isComplete: Bool
  /// Bytes of the elements, as far as they have been counted in the present pass and in the longest one.
  private var passByteCount = 0
  private var byteCount = 0
  private let maximumBytes: Int
  /// Elements that are not bytes yet count for their number alone.
  private let maximumCount: Int

  init(maximumBytes: Int, maximumCount: Int = 1024, isComplete: Bool = true) {
    self.isComplete = isComplete
    self.maximumBytes = maximumBytes
    self.maximumCount = maximumCount
  }

  mutating func append(_ element: Element, byteCount: Int = 0) {
    guard self.isComplete else { return }
    self.elements.append(element)
    self.charge(byteCount)
  }

  /// Counts bytes that elements turned out to have.
  mutating func charge(_ byteCount: Int) {
    guard self.isComplete else { return }
    self.passByteCount += byteCount
    self.byteCount = max(self.byteCount, self.passByteCount)
    if self.byteCount > self.maximumBytes || self.elements.count > self.maximumCount { self.drop() }
  }

  /// Begins to count anew, since the elements are sent again and will be charged again.
  mutating func restart() {
    self.passByteCount = 0
  }

  /// Lets go of everything; nothing can be sent again.
  mutating func drop() {
    self.elements = []
    self.isComplete = false
  }
}
