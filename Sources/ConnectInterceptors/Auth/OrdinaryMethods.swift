/// Methods whose calls are known not to be those of a credentials provider. Bounded.
struct OrdinaryMethods {
  private static let maximumCount = 1024

  private var methods: Set<String> = []

  mutating func insert(_ method: String) {
    if self.methods.count < Self.maximumCount { self.methods.insert(method) }
  }

  func contains(_ method: String) -> Bool { self.methods.contains(method) }
}
