/// The errors of messages that are over a limit of the client's. They name the setting.
enum MessageSizeErrors {
  /// - Parameters:
  ///   - size: What is known of the size, with its unit.
  ///   - limit: In bytes.
  static func received(_ size: String, limit: Int) -> ConnectError {
    .overLimit(
      "received message of \(size), which is over the limit of \(limit) bytes (maximumReceivedMessageSize)"
    )
  }

  static func sent(_ size: Int, limit: Int) -> ConnectError {
    .overLimit(
      "message to send has \(size) bytes, which is over the limit of \(limit) bytes (maximumSentMessageSize)"
    )
  }
}
