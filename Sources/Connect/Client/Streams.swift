/// A call that answers one request with a stream of messages.
///
/// ```swift
/// for try await message in client.serverStream(count, request).messages { print(message) }
/// ```
///
/// Dropping it, leaving the loop before the end, cancelling the task that reads it, or ``cancel()`` cancels the call on the
/// wire.
public struct ServerStream<Input: Sendable, Output: Sendable>: Sendable {
  let session: StreamSession

  /// The call. The handle does not keep it alive.
  package var handle: StreamHandle<Input, Output> { StreamHandle(call: self.session.call) }

  /// Headers, messages, and the end.
  public var results: StreamResults<Output> {
    StreamResults(session: self.session)
  }

  /// The messages alone.
  public var messages: StreamMessages<Output> {
    StreamMessages(session: self.session)
  }

  /// Cancels the call, also on the wire: it ends with ``Code/canceled``. Does nothing once the call has ended.
  public func cancel() {
    self.session.call.cancel()
  }
}

/// A call that answers a stream of messages with one message.
///
/// Dropping it, cancelling the task that sends or waits, or ``cancel()`` cancels the call on the wire.
public struct ClientStream<Input: Sendable, Output: Sendable>: Sendable {
  let session: ClientStreamSession

  /// Sends a message. Waits while the server does not take what was sent before.
  ///
  /// - Throws: ``ConnectError`` if the message cannot be sent any more. ``closeAndReceive()`` then tells how the call
  ///   ended.
  public nonisolated(nonsending) func send(_ message: Input) async throws(ConnectError) {
    try await self.session.call.send(MessageBox(message))
  }

  /// Ends the request and waits for the response. Further calls, also from other tasks, give the same response.
  public nonisolated(nonsending) func closeAndReceive() async -> ResponseMessage<Output> {
    ResponseMessage(await self.session.closeAndReceive())
  }

  /// Cancels the call, also on the wire: ``closeAndReceive()`` then gives ``Code/canceled``. Does nothing once the
  /// call has ended.
  public func cancel() {
    self.session.call.cancel()
  }
}

/// A call with a stream of messages in both directions, which may overlap where HTTP/2 is spoken.
///
/// The call is cancelled on the wire by ``cancel()``, by dropping the stream, or by cancelling a task that sends or
/// reads. Leaving the loop over the results before the end also cancels the call.
public struct BidirectionalStream<Input: Sendable, Output: Sendable>: Sendable {
  let session: StreamSession

  /// Sends without waiting. The handle does not keep the call alive.
  package var handle: StreamHandle<Input, Output> { StreamHandle(call: self.session.call) }

  /// Sends a message. Waits while the server does not take what was sent before.
  ///
  /// - Throws: ``ConnectError`` if the message cannot be sent any more. The end of ``results`` then tells how the call
  ///   ended.
  public nonisolated(nonsending) func send(_ message: Input) async throws(ConnectError) {
    try await self.session.call.send(MessageBox(message))
  }

  /// Ends the request; the response goes on.
  public func finish() {
    self.session.call.finish()
  }

  /// Headers, messages, and the end.
  public var results: StreamResults<Output> {
    StreamResults(session: self.session)
  }

  /// The messages alone.
  public var messages: StreamMessages<Output> {
    StreamMessages(session: self.session)
  }

  /// Cancels the call, also on the wire: it ends with ``Code/canceled``. Does nothing once the call has ended.
  public func cancel() {
    self.session.call.cancel()
  }
}
