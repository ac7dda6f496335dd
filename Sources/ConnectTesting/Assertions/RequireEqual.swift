internal import SwiftProtobuf

/// Checks that two values are equal.
///
/// - Parameter what: What is compared, for the failure.
/// - Throws: ``ExpectationFailure`` that says where it was thrown and in which lines the values' descriptions differ.
///   Messages are described field by field.
public func requireEqual<Value: Equatable>(
  _ actual: Value,
  _ expected: Value,
  _ what: String = "\(Value.self)",
  file: StaticString = #fileID,
  line: UInt = #line
) throws {
  guard actual != expected else { return }
  let difference = LineDiff.describe(expected: description(of: expected), actual: description(of: actual))
  throw ExpectationFailure("\(what): not as expected (- expected, + actual)\n\(difference)\n\(file):\(line)")
}

/// A value as text, with a line for each field of a message and each element of an array.
func description(of value: Any) -> String {
  switch value {
  case let message as any SwiftProtobuf.Message:
    let text = message.textFormatString()
    return text.hasSuffix("\n") ? String(text.dropLast()) : text
  case let elements as [Any] where !elements.isEmpty:
    return elements.map { "- " + description(of: $0).replacing("\n", with: "\n  ") }.joined(separator: "\n")
  case Optional<Any>.some(let wrapped) where Mirror(reflecting: value).displayStyle == .optional:
    return description(of: wrapped)
  default:
    return String(describing: value)
  }
}
