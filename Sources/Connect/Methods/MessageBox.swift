/// A message of any type: a ``MessageBox``. What carries calls passes messages on without knowing their types, so it is
/// compiled once.
@usableFromInline package typealias AnyMessage = AnyObject & Sendable

/// Holds the message of a request or of a response, which so take the same room whatever the message's type. Code that is
/// generic over messages, as hooks are, then copies them without looking their types up at run time.
@usableFromInline
package final class MessageBox<Message: Sendable>: Sendable {
  @usableFromInline package let message: Message

  @inlinable
  package init(_ message: Message) {
    self.message = message
  }

  /// The box of a message whose type is known from the method that is called.
  @inlinable
  @inline(__always)
  package static func of(_ message: any AnyMessage) -> MessageBox {
    assert(message is MessageBox, "a message of another type than the method's")
    return unsafeDowncast(message, to: MessageBox.self)
  }
}
