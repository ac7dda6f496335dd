import XCTest

/// Values that make no sense, or are as large or small as can be.
enum Extremes {
  static let durations: [Duration] = [
    .zero, .seconds(-1), .nanoseconds(1), .seconds(Int64.max), .seconds(Int64.min),
    Duration(attoseconds: .max), Duration(attoseconds: .min),
  ]
  static let integers: [Int] = [0, -1, 1, .max, .min]
  static let doubles: [Double] = [
    0, -1, .nan, .infinity, -.infinity, .greatestFiniteMagnitude, .leastNonzeroMagnitude,
  ]
}

/// A number in a configuration, with all the values that are tried.
struct ExtremeField<Root> {
  let name: String
  let changes: [(inout Root) -> Void]

  private init<Value>(_ name: String, _ path: WritableKeyPath<Root, Value>, _ values: [Value]) {
    self.name = name
    self.changes = values.map { value in { $0[keyPath: path] = value } }
  }

  init(_ name: String, _ path: WritableKeyPath<Root, Duration>) {
    self.init(name, path, Extremes.durations)
  }

  init(_ name: String, _ path: WritableKeyPath<Root, Duration?>) {
    self.init(name, path, Extremes.durations.map { $0 })
  }

  init(_ name: String, _ path: WritableKeyPath<Root, Int>) {
    self.init(name, path, Extremes.integers)
  }

  init(_ name: String, _ path: WritableKeyPath<Root, Int?>) {
    self.init(name, path, Extremes.integers.map { $0 })
  }

  init(_ name: String, _ path: WritableKeyPath<Root, Double>) {
    self.init(name, path, Extremes.doubles)
  }
}

/// Gives `body` the configuration with each extreme of each field in turn, then with extremes of all fields at once.
///
/// Fails if the structure has a number that is not among the fields.
func withExtremes<Root>(
  of root: Root,
  _ fields: [ExtremeField<Root>],
  file: StaticString = #filePath,
  line: UInt = #line,
  _ body: (Root) async throws -> Void
) async throws {
  XCTAssertEqual(Set(fields.map(\.name)), numbers(in: root), "\(Root.self)", file: file, line: line)
  for field in fields {
    for change in field.changes {
      var extreme = root
      change(&extreme)
      try await body(extreme)
    }
  }
  for index in 0..<(fields.map(\.changes.count).max() ?? 0) {
    var extreme = root
    for field in fields { field.changes[index % field.changes.count](&extreme) }
    try await body(extreme)
  }
}

/// The names of the stored numbers of a structure.
private func numbers(in root: Any) -> Set<String> {
  let types: [Any.Type] = [
    Duration.self, Duration?.self, Int.self, Int?.self, Double.self, Double?.self, Int64.self, Float.self,
  ]
  var names: Set<String> = []
  for child in Mirror(reflecting: root).children {
    guard let name = child.label, types.contains(where: { $0 == type(of: child.value) }) else { continue }
    names.insert(name)
  }
  return names
}
