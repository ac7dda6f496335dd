internal import Connect
internal import Synchronization

/// Sends the messages of a stream for functions that do not wait.
///
/// A message that cannot be queued would be missing from the stream. So it ends the call, with the reason.
final class MessageSender<Input: ProtobufMessage, Output: ProtobufMessage>: Sendable {
  private let handle: StreamHandle<Input, Output>
  private let failure: SendFailure
  private let isClosed = Atomic(false)

  /// - Parameter failure: Is told why a message could not be queued.
  init(_ handle: StreamHandle<Input, Output>, _ failure: SendFailure) {
    self.handle = handle
    self.failure = failure
  }

  /// - Throws: `failed_precondition` if the request has ended.
  func send(_ message: Input) throws(ConnectError) {
    guard !self.isClosed.load(ordering: .relaxed) else { throw .requestEnded }
    self.enqueue(message)
  }

  /// Sends the only message, and ends the request.
  ///
  /// - Throws: `failed_precondition` if the request has ended.
  func sendOnly(_ message: Input) throws(ConnectError) {
    guard !self.isClosed.exchange(true, ordering: .relaxed) else { throw .requestEnded }
    self.enqueue(message)
    self.handle.finish()
  }

  private func enqueue(_ message: Input) {
    self.handle.send(message) { [handle, failure] error in
      // Other errors are in the results, too.
      guard let error, error.code == .resourceExhausted else { return }
      failure.record(error)
      handle.cancel()
    }
  }

  /// Ends the request behind what was sent.
  func close() {
    guard !self.isClosed.exchange(true, ordering: .relaxed) else { return }
    self.handle.finish()
  }

  func cancel() {
    self.isClosed.store(true, ordering: .relaxed)
    self.handle.cancel()
  }
}

extension ConnectError {
  fileprivate static var requestEnded: ConnectError {
    ConnectError(Connect::ConnectError(code: .failedPrecondition, message: "the stream's request has ended"))
  }
}

/// Why a stream was cancelled by itself, which its end then says in place of `canceled`.
final class SendFailure: Sendable {
  private let error = Mutex<Connect::ConnectError?>(nil)

  func record(_ error: Connect::ConnectError) {
    self.error.withLock { $0 = $0 ?? error }
  }

  /// A result of the stream in connect-swift's form.
  func result<Output>(of result: Connect::StreamResult<Output>) -> StreamResult<Output> {
    guard case .complete(.canceled, _, _) = result, let error = self.error.withLock({ $0 }) else {
      return StreamResult(result)
    }
    return StreamResult(.failed(error))
  }

  /// The results of a stream in connect-swift's form. One is read only when it is asked for.
  func results<Output>(of results: StreamResults<Output>) -> AsyncStream<StreamResult<Output>> {
    let iterator = results.makeAsyncIterator()
    return AsyncStream {
      // Copies of an iterator go on where the others are.
      var iterator = iterator
      return await iterator.next().map { self.result(of: $0) }
    }
  }
}
