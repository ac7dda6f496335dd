internal import Connect
internal import Logging

/// The place of an interceptor in the recommended set.
struct PartPlace {
  /// The interceptor's type.
  let type: any Interceptor.Type
  /// Nil if the part is left out.
  let factory: InterceptorFactory?

  /// - Parameters:
  ///   - type: The interceptor's type.
  ///   - part: What the interceptors are made with; nil to leave them out.
  ///   - make: Makes the factory of the interceptors.
  init<Part>(_ type: any Interceptor.Type, _ part: Part?, _ make: (Part) -> InterceptorFactory) {
    self.type = type
    self.factory = part.map(make)
  }
}

/// A change of the recommended set at the place of one type.
struct PartEdit: Sendable {
  enum Kind: Sendable {
    case before, after, inPlace
  }

  let place: ObjectIdentifier
  let kind: Kind
  let factories: [InterceptorFactory]
}

extension ClientParts {
  /// The set with the user's changes.
  func edited(_ places: [PartPlace]) -> [InterceptorFactory] {
    var factories: [InterceptorFactory] = []
    for (index, place) in places.enumerated() {
      let edits = self.edits.filter { $0.place == ObjectIdentifier(place.type) }
      let replacement = edits.last { $0.kind == .inPlace }
      // Tracing stands twice.
      if places.firstIndex(where: { $0.type == place.type }) == index {
        factories += edits.filter { $0.kind == .before }.flatMap(\.factories)
        factories += replacement?.factories ?? []
      }
      if let factory = place.factory, replacement == nil { factories.append(factory) }
      if places.lastIndex(where: { $0.type == place.type }) == index {
        factories += edits.filter { $0.kind == .after }.flatMap(\.factories)
      }
    }
    let known = Set(places.map { ObjectIdentifier($0.type) })
    return factories + self.edits.filter { !known.contains($0.place) }.flatMap(\.factories)
  }

  /// Changes the set.
  ///
  /// - Returns: What is wrong with the change; nil for nothing.
  mutating func edit(
    _ kind: PartEdit.Kind,
    _ type: any Interceptor.Type,
    _ factories: [InterceptorFactory]
  ) -> String? {
    self.edits.append(PartEdit(place: ObjectIdentifier(type), kind: kind, factories: factories))
    let places = self.places
    guard !places.contains(where: { $0.type == type }) else { return nil }
    var names: [String] = []
    for place in places where !names.contains("\(place.type)") { names.append("\(place.type)") }
    return "\(type) is not in the recommended set, and has no place there. The set has "
      + names.joined(separator: ", ")
  }

  func report(_ problem: String?) {
    guard let problem else { return }
    self.logger.warning("\(problem)")
    assertionFailure(problem)
  }
}
