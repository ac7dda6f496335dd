internal import Connect
import XCTest

/// All results of a stream, in order within each kind.
struct StreamOutcome<Message: Sendable>: Sendable {
  struct End: Sendable {
    var code: Code
    var error: ConnectError?
    var trailers: Headers
  }

  private(set) var headers: [Headers] = []
  private(set) var messages: [Message] = []
  private(set) var ends: [End] = []
  /// Whether anything came after the end, or headers after a message.
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

  /// The code that the stream ended with; nil if there was not exactly one end, or if it was not the last result.
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
  /// Waits for the end of a stream whose results this object records.
  func outcome<Message: Sendable>() async throws -> StreamOutcome<Message>
  where Value == StreamResult<Message> {
    try await eventually("the end of a stream") {
      self.values.contains { if case .complete = $0 { true } else { false } }
    }
    return StreamOutcome(self.values)
  }
}
