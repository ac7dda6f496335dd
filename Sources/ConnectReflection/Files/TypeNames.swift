/// Writes the names of types as short as their scope allows.
struct TypeNames {
  let index: SymbolIndex

  /// - Parameters:
  ///   - typeName: The name from a descriptor: with a dot in front if it is a full name.
  ///   - scope: The full name of the message, service or package in which it is used.
  func name(_ typeName: String, in scope: String) -> String {
    guard typeName.hasPrefix(".") else { return typeName }
    let fullName = typeName.dropFirst()
    // The compiler resolves the first part of a name from the innermost scope outwards, and does not backtrack.
    var inner: [Substring] = []
    var outer = scope[...]
    while true {
      let prefix = outer.isEmpty ? "" : "\(outer)."
      if fullName.hasPrefix(prefix) {
        let rest = fullName.dropFirst(prefix.count)
        let first = rest.prefix { $0 != "." }
        if self.index.has(first, in: outer), !inner.contains(where: { self.index.has(first, in: $0) }) {
          return String(rest)
        }
      }
      guard !outer.isEmpty else { return typeName }
      inner.append(outer)
      outer = outer.lastIndex(of: ".").map { outer[..<$0] } ?? ""
    }
  }

  /// The full name, if no name in `scope` or around it hides it. Text format, as in the values of options, has no
  /// leading dot for full names.
  func fullName(_ name: String, in scope: String) -> String {
    let first = name[...].prefix { $0 != "." }
    var outer = scope[...]
    while !outer.isEmpty {
      if self.index.has(first, in: outer) { return ProtoText.withoutDot(self.name(".\(name)", in: scope)) }
      outer = outer.lastIndex(of: ".").map { outer[..<$0] } ?? ""
    }
    return name
  }
}
