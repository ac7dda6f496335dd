import Synchronization

/// Holds weak references to objects, to see which objects a call has released.
final class Lives: Sendable {
  private struct Entry: Sendable {
    let name: String
    weak let object: (any AnyObject & Sendable)?
  }

  private let entries = Mutex<[Entry]>([])

  func add(_ object: any AnyObject & Sendable, _ name: String) {
    self.entries.withLock { $0.append(Entry(name: name, object: object)) }
  }

  /// The names of objects that are still alive.
  var names: [String] {
    self.entries.withLock { $0 }.filter { $0.object != nil }.map(\.name)
  }
}
