public import Connect
public import SwiftProtobuf

/// Metadata as connect-swift has it: the values of each name. Names of responses are in lower case.
///
/// The fields lose their order on the way into a dictionary; the values of one name keep theirs.
public typealias Headers = [String: [String]]

/// Metadata behind a body, as connect-swift has it.
public typealias Trailers = Headers

/// What a message of a method is: one of SwiftProtobuf's.
public typealias ProtobufMessage = SwiftProtobuf.Message & Sendable

extension Connect::Headers {
  /// The same fields in this library's type. Names that differ in case alone are one name, and their values are put together.
  public init(_ headers: [String: [String]]) {
    self.init()
    // Sorted, so that equal dictionaries give the same order.
    for (name, values) in headers.sorted(by: { $0.key < $1.key }) {
      for value in values { self.add(name: name, value: value) }
    }
  }

  /// The same fields in connect-swift's type.
  public var dictionary: [String: [String]] {
    self.reduce(into: [:]) { result, field in result[field.name, default: []].append(field.value) }
  }
}
