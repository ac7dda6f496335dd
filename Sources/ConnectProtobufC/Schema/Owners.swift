/// Maps each type to its owners: the types that have fields of this type. Finds all types that contain a type at any
/// depth, in time proportional to the number of fields.
struct Owners<Type: Hashable> {
  private var owners: [Type: [Type]] = [:]

  /// Add all fields of one owner consecutively: then the owner is stored once, however many of its fields have the
  /// type.
  mutating func add(_ owner: Type, of inner: Type) {
    if self.owners[inner]?.last != owner { self.owners[inner, default: []].append(owner) }
  }

  /// The types `from`, and all types that contain one of them. Calls `body` with each containing type, and the inner
  /// type by which it was found.
  func reached(
    from found: some Sequence<Type>,
    _ body: (_ owner: Type, _ inner: Type) -> Void = { _, _ in }
  ) -> Set<Type> {
    var reached = Set(found)
    var open = Array(reached)
    while let inner = open.popLast() {
      for owner in self.owners[inner] ?? [] where reached.insert(owner).inserted {
        body(owner, inner)
        open.append(owner)
      }
    }
    return reached
  }
}
