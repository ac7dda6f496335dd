/// The elements that were sent. They are kept within limits, so that they can be sent again from the start.
struct ReplayLog<Element> {
  private(set) var elements: [Element] = []
  /// Whether nothing was left out, so that ``elements`` is all that was sent.
  private(set) var isComplete: Bool
  /// The bytes of elements that were counted in the present pass, and in the longest pass.
  private var passByteCount = 0
  private var byteCount = 0
  private let maximumBytes: Int
  /// Elements that are not encoded yet count only by their number.
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

  /// Counts the encoded bytes of elements.
  mutating func charge(_ byteCount: Int) {
    guard self.isComplete else { return }
    self.passByteCount += byteCount
    self.byteCount = max(self.byteCount, self.passByteCount)
    if self.byteCount > self.maximumBytes || self.elements.count > self.maximumCount { self.drop() }
  }

  /// Restarts the count, since the elements are sent again and will be charged again.
  mutating func restart() {
    self.passByteCount = 0
  }

  /// Drops all elements; nothing can be sent again.
  mutating func drop() {
    self.elements = []
    self.isComplete = false
  }
}
