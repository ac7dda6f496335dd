#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ConnectError: CustomStringConvertible {
  /// Code and message, for example `not_found: no such user`. The cause is left out where there is a message, which
  /// says of the cause what matters.
  public var description: String {
    if let message = self.message, !message.isEmpty { return "\(self.code.name): \(message)" }
    return self.exception.map { "\(self.code.name): \($0)" } ?? self.code.name
  }
}

extension ConnectError: CustomDebugStringConvertible {
  /// The description, and behind it the HTTP status, the types of the details, and the cause in its own words. Without
  /// the metadata, which may hold secrets.
  public var debugDescription: String {
    var parts = [self.description]
    if let status = self.httpStatus { parts.append(HTTPStatus.describe(status)) }
    if !self.details.isEmpty { parts.append("details: \(self.details.map(\.type).joined(separator: ", "))") }
    if let exception = self.exception { parts.append("cause: \(String(reflecting: exception))") }
    return parts.joined(separator: "; ")
  }
}

extension ConnectError: LocalizedError {
  /// The ``description``, so that `localizedDescription` says it, too. In English, always.
  public var errorDescription: String? { self.description }
}
