/// Holds the message of a request or of a response, which so take the same room whatever the message's type. Code that is
/// generic over messages, as hooks are, then copies them without looking their types up at run time.
///
/// `@unchecked Sendable`: changed only by ``HTTPRequest``, and there only where it holds the one reference, under its own
/// exclusive access.
final class MessageBox<Message: Sendable>: @unchecked Sendable {
  @exclusivity(unchecked) var message: Message

  init(_ message: Message) {
    self.message = message
  }
}
