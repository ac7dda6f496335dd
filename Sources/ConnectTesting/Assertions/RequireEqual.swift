internal import SwiftProtobuf

/// Checks that two values are equal.
///
/// - Parameters:
///   - actual: The value to check. In the failure, `+` marks lines that only this value has.
///   - expected: What it should be equal to. In the failure, `-` marks lines that only this value has.
///   - what: What is compared, for the failure.
///   - file: The file that the failure names; by default the caller's.
///   - line: The line that the failure names; by default the caller's.
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
  var texts = (expected: description(of: expected), actual: description(of: actual))
  // Values that look the same, such as nil and "nil", or texts that end with spaces.
  if visible(texts.expected) == visible(texts.actual) {
    texts = (String(reflecting: expected), String(reflecting: actual))
  }
  var difference = LineDiff.describe(expected: texts.expected, actual: texts.actual)
  if texts.expected == texts.actual { difference += "\n(what differs is in no description)" }
  throw ExpectationFailure("\(what): not as expected (- expected, + actual)\n\(difference)\n\(file):\(line)")
}

/// The lines of `text` without trailing whitespace.
private func visible(_ text: String) -> [Substring] {
  text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
    line.lastIndex { !$0.isWhitespace }.map { line[...$0] } ?? ""
  }
}

/// A value as text, with a line for each field of a message, each element of an array, and each entry of a dictionary.
func description(of value: Any) -> String {
  switch value {
  case let message as any SwiftProtobuf.Message:
    let text = message.textFormatString()
    return text.hasSuffix("\n") ? String(text.dropLast()) : text
  case let elements as [Any] where !elements.isEmpty:
    return elements.map { "- " + description(of: $0).replacing("\n", with: "\n  ") }.joined(separator: "\n")
  case let entries as [AnyHashable: Any] where !entries.isEmpty:
    let lines = entries.map { "\(description(of: $0.key.base)): \(description(of: $0.value))" }
    return lines.sorted().joined(separator: "\n")
  case Optional<Any>.some(let wrapped) where Mirror(reflecting: value).displayStyle == .optional:
    return description(of: wrapped)
  default:
    return String(describing: value)
  }
}
