/// A message of any type: a ``MessageBox``. Code that carries calls does not know the types of messages, so it is
/// compiled once.
@usableFromInline package typealias AnyMessage = AnyObject & Sendable

/// Holds the message of a request or of a response, so that their size does not depend on the message's type. Generic
/// code, such as hooks, then copies requests and responses without looking types up at run time.
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
