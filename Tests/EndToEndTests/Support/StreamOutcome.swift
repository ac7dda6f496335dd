internal import Connect
import XCTest

/// All that a stream brought, in its order within each kind.
struct StreamOutcome<Message: Sendable>: Sendable {
  struct End: Sendable {
    var code: Code
    var error: ConnectError?
    var trailers: Headers
  }

  private(set) var headers: [Headers] = []
  private(set) var messages: [Message] = []
  private(set) var ends: [End] = []
  /// Whether anything came behind the end, or headers behind a message.
  private(set) var isOutOfOrder = false

  init(_ results: [StreamResult<Message>] = []) {
    for result in results { self.add(result) }
  }

  mutating func add(_ result: StreamResult<Message>) {
    if !self.ends.isEmpty { self.isOutOfOrder = true }
    switch result {
    case .headers(let headers):
      if !self.messages.isEmpty { self.isOutOfOrder = true }
      self.headers.append(headers)
    case .message(let message):
      self.messages.append(message)
    case .complete(let code, let error, let trailers):
      self.ends.append(End(code: code, error: error, trailers: trailers))
    }
  }

  /// The code that the stream ended with; nil if it did not end exactly once, and last.
  var code: Code? { self.ends.count == 1 && !self.isOutOfOrder ? self.ends[0].code : nil }
  var error: ConnectError? { self.ends.first?.error }
  var trailers: Headers { self.ends.first?.trailers ?? Headers() }
}

extension StreamResults {
  /// Reads to the end.
  func collect() async -> StreamOutcome<Output> {
    var outcome = StreamOutcome<Output>()
    for await result in self { outcome.add(result) }
    return outcome
  }
}

extension Recorder {
  /// Waits for the end of a stream whose results are recorded here.
  func outcome<Message: Sendable>() async throws -> StreamOutcome<Message>
  where Value == StreamResult<Message> {
    try await eventually("the end of a stream") {
      self.values.contains { if case .complete = $0 { true } else { false } }
    }
    return StreamOutcome(self.values)
  }
}
