internal import SwiftProtobuf

/// Finds the comments and positions of declarations.
struct SourceLocations {
  typealias Location = Google_Protobuf_SourceCodeInfo.Location

  /// Line and column.
  struct Position: Comparable {
    var line: Int32
    var column: Int32

    static func < (left: Position, right: Position) -> Bool {
      (left.line, left.column) < (right.line, right.column)
    }
  }

  private var locations: [[Int32]: [Location]] = [:]

  init(_ info: Google_Protobuf_SourceCodeInfo) {
    for location in info.location { self.locations[location.path, default: []].append(location) }
  }

  /// The location of a declaration; the first one if there are several.
  func location(at path: [Int32]) -> Location? { self.locations[path]?.first }

  private func start(of path: [Int32]) -> Position? { self.location(at: path).flatMap(Self.start) }

  private static func start(_ location: Location) -> Position? {
    guard location.span.count >= 3 else { return nil }
    return Position(line: location.span[0], column: location.span[1])
  }

  /// The statement at `path` around the element at `inner`. Statements without a path of their own, such as those of
  /// reserved numbers, share one path.
  func location(at path: [Int32], around inner: [Int32]) -> Location? {
    guard let start = self.start(of: inner), let statements = self.locations[path] else { return nil }
    return statements.last { Self.start($0).map { $0 <= start } ?? false }
  }

  /// Groups `count` items at `path` by the statement that contains them. Without source info, all items are in one
  /// statement.
  func statements(at path: [Int32], count: Int) -> [(items: Range<Int>, location: Location?)] {
    var statements: [(items: Range<Int>, location: Location?)] = []
    for number in 0..<count {
      let location = self.location(at: path, around: path + [Int32(number)])
      if let last = statements.last, last.location?.span == location?.span {
        statements[statements.count - 1].items = last.items.lowerBound..<number + 1
      } else {
        statements.append((number..<number + 1, location))
      }
    }
    return statements
  }

  /// The items in the order of the source; unchanged if it is not known of all. Items at one place keep their order.
  func inSourceOrder<Item>(_ items: [Item], path: (Item) -> [Int32]) -> [Item] {
    let starts = items.compactMap { self.start(of: path($0)) }
    guard starts.count == items.count else { return items }
    return zip(starts, items).enumerated()
      .sorted { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }.map(\.element.1)
  }
}
