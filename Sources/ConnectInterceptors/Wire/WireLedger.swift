internal import DequeModule

/// What a call has received of a response and not consumed. Says how much of the transport's window that frees.
///
/// In the end the window has got back exactly what the transport delivered, whatever interceptors made of it.
struct WireLedger {
  private struct Entry {
    var size: Int
    var credit: Int
  }

  private var entries: Deque<Entry> = []
  /// Bytes that the call has not consumed.
  private(set) var unconsumedBytes = 0

  mutating func receive(_ size: Int, credit: Int) {
    self.entries.append(Entry(size: size, credit: credit))
    self.unconsumedBytes += size
  }

  /// - Parameter count: How many bytes the call has consumed. More than it has received counts as all.
  /// - Returns: How many bytes are to be given back to the transport.
  mutating func consume(_ count: Int) -> Int {
    var rest = min(max(count, 0), self.unconsumedBytes)
    self.unconsumedBytes -= rest
    var credit = 0
    while rest > 0, let first = self.entries.first {
      if first.size <= rest {
        rest -= first.size
        credit += first.credit
        self.entries.removeFirst()
      } else {
        // Never more than what is left behind has room for.
        let part = min(rest, first.credit)
        self.entries[0].size -= rest
        self.entries[0].credit -= part
        credit += part
        rest = 0
      }
    }
    return credit
  }
}
