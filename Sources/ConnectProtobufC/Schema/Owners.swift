/// Which types have which types in them, asked from the inner ones: finds all that hold something at any depth, in time
/// proportional to their fields.
struct Owners<Type: Hashable> {
  private var owners: [Type: [Type]] = [:]

  /// Those of one owner are to be added one after the other, so that it is kept once, however many of its fields are of
  /// the type.
  mutating func add(_ owner: Type, of inner: Type) {
    if self.owners[inner]?.last != owner { self.owners[inner, default: []].append(owner) }
  }

  /// The types `from` and those that have them in them; calls `body` with each of the latter, and a type in it that it
  /// was found by.
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
