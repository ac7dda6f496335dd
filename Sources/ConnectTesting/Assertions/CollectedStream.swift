public import Connect

/// All that a stream brought.
public struct CollectedStream<Output: Sendable>: Sendable {
  /// The response's headers; empty if none came.
  public var headers = Headers()
  /// The messages that arrived, in order.
  public var messages: [Output] = []
  /// How the stream ended: `unknown` if it has brought no end.
  public var code = Code.unknown
  /// Nil for a stream that ended well.
  public var error: ConnectError?
  /// The trailers that came with the end; empty if none came.
  public var trailers = Headers()

  /// The messages of a stream that has to have ended well.
  ///
  /// - Throws: ``ExpectationFailure`` with the error, its details and metadata.
  public func requireMessages(file: StaticString = #fileID, line: UInt = #line) throws -> [Output] {
    guard let error = self.error else { return self.messages }
    throw ExpectationFailure(
      "expected a good end, and after \(self.messages.count) messages the stream failed with \(error.summary)"
        + "\n\(file):\(line)"
    )
  }

  /// The error of a stream that has to have failed with `code`.
  ///
  /// - Throws: ``ExpectationFailure`` with the end that the stream had instead.
  @discardableResult
  public func requireError(
    _ code: Code,
    file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> ConnectError {
    if let error = self.error, error.code == code { return error }
    let found = self.error.map { "it failed with \($0.summary)" } ?? "it ended well"
    throw ExpectationFailure(
      "expected the stream to fail with \(code), and after \(self.messages.count) messages \(found)\n\(file):\(line)"
    )
  }
}

extension StreamResults {
  /// Reads the stream to its end.
  ///
  /// - Parameter limit: How long to wait at most, in real time.
  /// - Throws: ``ExpectationFailure`` if the stream has not ended by then. It is cancelled.
  public func collected(within limit: Duration = .seconds(5)) async throws -> CollectedStream<Output> {
    let collected = Observed(CollectedStream<Output>())
    let isComplete = await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        for await result in self {
          collected.update { $0.add(result) }
          if case .complete = result { return true }
        }
        return true
      }
      group.addTask {
        try? await Task.sleep(for: limit.clamped)
        return false
      }
      let isComplete = await group.next() ?? false
      group.cancelAll()
      return isComplete
    }
    if isComplete { return collected.value }
    throw ExpectationFailure(
      "the stream did not end within \(limit.clamped); \(collected.value.messages.count) messages came"
    )
  }
}

extension CollectedStream {
  fileprivate mutating func add(_ result: StreamResult<Output>) {
    switch result {
    case .headers(let headers): self.headers = headers
    case .message(let message): self.messages.append(message)
    case .complete(let code, let error, let trailers):
      self.code = code
      self.error = error
      self.trailers = trailers
    }
  }
}
