internal import Connect

/// The messages of a call's request, as they arrive. To be iterated once, by one task.
///
/// Throws an error once the client has gone away, and `ConnectError` for messages that do not decode.
public struct ServerRequests<Input: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Input

  private let receive: @Sendable () async throws -> Input?

  init(_ receive: @escaping @Sendable () async throws -> Input?) {
    self.receive = receive
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    let receive: @Sendable () async throws -> Input?

    public mutating func next() async throws -> Input? {
      try await self.receive()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(receive: self.receive)
  }

  /// The only message.
  ///
  /// - Throws: ``ConnectError`` with `unimplemented` if there is none, or more than one.
  package func only() async throws -> Input {
    guard let message = try await self.receive() else {
      throw ConnectError(code: .unimplemented, message: "the request has no message")
    }
    guard try await self.receive() == nil else {
      throw ConnectError(code: .unimplemented, message: "the request has more than one message")
    }
    return message
  }

  /// The same messages, each shown to a function as it is taken.
  func observed(_ observe: @escaping @Sendable (Input) -> Void) -> ServerRequests {
    let receive = self.receive
    return ServerRequests {
      let message = try await receive()
      if let message { observe(message) }
      return message
    }
  }
}

/// Sends the messages of a call's response.
public struct ServerResponses<Output: Sendable>: Sendable {
  private let sendMessage: @Sendable (Output) async throws -> Void

  init(_ send: @escaping @Sendable (Output) async throws -> Void) {
    self.sendMessage = send
  }

  /// Sends a message; returns when the client takes more.
  ///
  /// - Throws: An error once the client has gone away, or if the message does not encode.
  public func send(_ message: Output) async throws {
    try await self.sendMessage(message)
  }
}
