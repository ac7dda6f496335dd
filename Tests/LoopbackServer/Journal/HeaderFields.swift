internal import NIOHTTP1

/// Header lines in order; names are compared without regard to case.
public struct HeaderFields: Sendable, Equatable {
  public struct Field: Sendable, Equatable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  public private(set) var fields: [Field] = []

  public init() {}

  /// Adds a line; earlier lines of the same name stay.
  public mutating func add(_ name: String, _ value: String) {
    self.fields.append(Field(name: name, value: value))
  }

  /// The values of all lines with this name.
  public subscript(name: String) -> [String] {
    let wanted = name.lowercased()
    return self.fields.filter { $0.name.lowercased() == wanted }.map(\.value)
  }

  /// The value of the first line with this name.
  public func first(_ name: String) -> String? {
    self[name].first
  }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { self.add(name, value) }
  }
}

extension HeaderFields {
  init(_ headers: HTTPHeaders) {
    for (name, value) in headers { self.add(name, value) }
  }

  var asHTTPHeaders: HTTPHeaders {
    HTTPHeaders(self.fields.map { ($0.name, $0.value) })
  }
}
