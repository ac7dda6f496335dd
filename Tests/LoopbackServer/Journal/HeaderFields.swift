internal import NIOHTTP1
internal import SwiftProtobuf

/// Header lines in order, with names that compare in any case.
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

  /// Adds a line; an earlier one of the same name stays.
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

  mutating func add(contentsOf other: HeaderFields) {
    self.fields.append(contentsOf: other.fields)
  }

  /// Adds the lines of a message's headers, with a prefix to each name.
  mutating func add(_ headers: [Connect_Test_V1_Header], prefix: String = "") {
    for header in headers {
      for value in header.values { self.add(prefix + header.name, value) }
    }
  }

  /// As messages, lines of one name joined into one.
  var asMessages: [Connect_Test_V1_Header] {
    var messages: [Connect_Test_V1_Header] = []
    for field in self.fields {
      let name = field.name.lowercased()
      if let index = messages.firstIndex(where: { $0.name == name }) {
        messages[index].values.append(field.value)
      } else {
        messages.append(.with { ($0.name, $0.values) = (name, [field.value]) })
      }
    }
    return messages
  }

  var asHTTPHeaders: HTTPHeaders {
    HTTPHeaders(self.fields.map { ($0.name, $0.value) })
  }
}
