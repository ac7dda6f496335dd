/// What was found wrong with one resource.
final class ProblemList {
  /// A server may send any number of wrong fields. What is sent back to it has a bounded size.
  private static let limit = 100
  /// Problems quote what was sent. Paths of nested policies are long.
  private static let maximumLength = 4_000

  private var texts: [String] = []
  private(set) var count = 0

  /// - Parameter text: With the path of its field.
  func add(_ text: @autoclosure () -> String) {
    self.count += 1
    guard self.texts.count < Self.limit else { return }
    let text = text()
    guard text.utf8.count > Self.maximumLength else { return self.texts.append(text) }
    self.texts.append(String(decoding: text.utf8.prefix(Self.maximumLength), as: UTF8.self) + "...")
  }

  /// Nil if nothing is wrong.
  var problem: ResourceProblem? {
    guard self.count > 0 else { return nil }
    let rest = self.count - self.texts.count
    return ResourceProblem(problems: rest == 0 ? self.texts : self.texts + ["and \(rest) problems more"])
  }
}

/// A field of a resource that is being decoded. Its path is written only if something is wrong there.
final class FieldPlace {
  private enum Detail {
    case none
    case index(Int)
    case key(String)
  }

  private let problems: ProblemList
  private let parent: FieldPlace?
  private let name: String
  private let detail: Detail

  private init(_ problems: ProblemList, _ parent: FieldPlace?, _ name: String, _ detail: Detail) {
    self.problems = problems
    self.parent = parent
    self.name = name
    self.detail = detail
  }

  /// The resource itself.
  convenience init(_ problems: ProblemList) {
    self.init(problems, nil, "", .none)
  }

  /// A field of the message at this place.
  func field(_ name: String) -> FieldPlace { FieldPlace(self.problems, self, name, .none) }

  /// An element of a repeated field.
  func element(_ name: String, _ index: Int) -> FieldPlace {
    FieldPlace(self.problems, self, name, .index(index))
  }

  /// An entry of a map, or the message of a type that is in a field.
  func entry(_ name: String, _ key: String) -> FieldPlace {
    FieldPlace(self.problems, self, name, .key(key))
  }

  func report(_ problem: String) {
    self.problems.add(self.path.isEmpty ? problem : "\(self.path): \(problem)")
  }

  /// How many problems the resource has by now, at any place.
  var problemCount: Int { self.problems.count }

  private var path: String {
    var parts: [String] = []
    var place = self
    while let parent = place.parent {
      switch place.detail {
      case .none: parts.append(place.name)
      case .index(let index): parts.append("\(place.name)[\(index)]")
      case .key(let key): parts.append("\(place.name)[\(key)]")
      }
      place = parent
    }
    return parts.reversed().joined(separator: ".")
  }
}
