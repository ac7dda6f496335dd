#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension ConnectError: CustomStringConvertible {
  /// Code and message, for example `not_found: no such user`. If there is a message, the cause is left out, since the
  /// message covers it.
  public var description: String {
    if let message = self.message, !message.isEmpty { return "\(self.code.name): \(message)" }
    return self.exception.map { "\(self.code.name): \($0)" } ?? self.code.name
  }
}

extension ConnectError: CustomDebugStringConvertible {
  /// The description, then the HTTP status, the types of the details, and the debug description of the cause. Without
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
  /// The ``description``, for `localizedDescription`. Always in English.
  public var errorDescription: String? { self.description }
}
