import Foundation

/// One line of a conversation.
public struct ChatMessage: Equatable, Sendable {
  public enum Author: Equatable, Sendable {
    case user
    case eliza
  }

  public let text: String
  public let author: Author

  public init(text: String, author: Author) {
    self.text = text
    self.author = author
  }
}
