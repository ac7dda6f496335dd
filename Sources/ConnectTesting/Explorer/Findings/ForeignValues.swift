internal import Connect
internal import Foundation

/// What only the caller of one call has sent. It must not be seen in the requests of another call.
struct ForeignValues {
  /// Shorter values may be a part of anything by chance. They count only as a whole.
  private static let shortestPart = 4

  private var parts: [String] = []
  private var fields: [Headers.Field] = []
  private var messages: [String] = []

  init(of other: ExploredCall, unlike call: ExploredCall) {
    let own = call.requestHeaders.map(\.value) + call.sent
    for field in other.requestHeaders where !field.value.isEmpty {
      if field.value.utf8.count >= Self.shortestPart {
        if !own.contains(where: { $0.hasPart(field.value) }) { self.parts.append(field.value) }
      } else if !call.requestHeaders[field.name].contains(field.value) {
        self.fields.append(field)
      }
    }
    for message in other.sent where !message.isEmpty {
      if message.utf8.count >= Self.shortestPart {
        if !own.contains(where: { $0.hasPart(message) }) { self.parts.append(message) }
      } else if !call.sent.contains(message) {
        self.messages.append(message)
      }
    }
  }

  /// The first value that is seen in a request, and where.
  func first(in attempt: ExploredAttempt) -> (value: String, place: String)? {
    for field in attempt.headers {
      let part = self.parts.first { field.value.hasPart($0) }
      if let value = part ?? (self.fields.contains(field) ? field.value : nil) {
        return (value, "the request header \(field.name)")
      }
    }
    let message = attempt.messages.first { text in
      self.messages.contains(text) || self.parts.contains { text.hasPart($0) }
    }
    return message.map { ($0, "a request message") }
  }
}

extension String {
  /// Whether it has `part`. The C library searches in linear time, and is fast also in debug builds: texts may be long.
  func hasPart(_ part: String) -> Bool {
    guard self.utf8.count >= part.utf8.count else { return false }
    let isFound = self.withCString { text in
      part.withCString { bytes -> Bool? in
        // A text with a zero inside ends early for C.
        guard strlen(text) == self.utf8.count, strlen(bytes) == part.utf8.count else { return nil }
        return strstr(text, bytes) != nil
      }
    }
    return isFound ?? self.utf8.contains(part.utf8)
  }
}
