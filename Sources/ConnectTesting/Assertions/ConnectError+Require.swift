public import Connect
public import SwiftProtobuf

extension ConnectError {
  /// The first detail of type `M`.
  ///
  /// - Throws: ``ExpectationFailure`` with the error and the types of the details that it has.
  public func requireDetail<M: SwiftProtobuf.Message>(
    _ type: M.Type = M.self,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> M {
    if let detail = self.unpackedDetails(type).first { return detail }
    throw ExpectationFailure(
      "expected a detail of type \(M.protoMessageName) in \(self.summary)\n\(file):\(line)"
    )
  }

  /// The error in full, a line for each fact.
  var summary: String {
    var lines = [self.description]
    if let status = self.httpStatus { lines.append("HTTP status: \(status)") }
    if self.message?.isEmpty == false, let exception = self.exception { lines.append("cause: \(exception)") }
    if !self.details.isEmpty { lines.append("details: \(self.details.map(\.type).joined(separator: ", "))") }
    lines += self.metadata.map { "\($0.name): \($0.value)" }
    return lines.joined(separator: "\n  ")
  }
}
