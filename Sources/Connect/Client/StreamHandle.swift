/// Controls a stream whose results go to a callback: sends messages, asks for more results, cancels. Dropping it does
/// not cancel.
public struct StreamHandle<Input: Sendable, Output: Sendable>: Sendable {
  let call: StreamCall

  /// Sends a message as soon as the server takes it. Messages are sent in the order of these calls.
  ///
  /// - Parameters:
  ///   - message: Waits in memory until it is accepted. ``ProtocolClientConfig/Limits/maximumQueuedMessages`` bounds how many
  ///     messages wait.
  ///   - completion: Called once on the call's executor. Nil means that the message was accepted, and that the
  ///     next one may be sent. An error says why the message cannot be sent: `resource_exhausted` if too many messages
  ///     wait, `failed_precondition` if the call has ended.
  public func send(_ message: Input, completion: @escaping @Sendable (ConnectError?) -> Void = { _ in }) {
    let message = MessageBox(message)
    self.call.run { $0.send(message, $1, completion: completion) }
  }

  /// Ends the request after the messages sent so far; the response goes on.
  public func finish() {
    self.call.finish()
  }

  /// Lets `count` more results come, if the call was started with a limited demand.
  public func request(_ count: Int) {
    self.call.run { $0.request(count, $1) }
  }

  /// Cancels the call, also on the wire: it completes with `canceled`, unless it has completed before.
  public func cancel() {
    self.call.cancel()
  }
}
