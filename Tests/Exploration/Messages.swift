internal import Connect
internal import SwiftProtobuf

/// Messages are texts: they need no generated code, and both codecs handle them fast.
typealias Text = Google_Protobuf_StringValue

extension MethodSpec where Input == Text, Output == Text {
  static let post = MethodSpec<Text, Text>(path: "/explore.Explorer/Post", streamType: .unary)
  static let get = MethodSpec<Text, Text>(
    path: "/explore.Explorer/Get",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )
  static let list = MethodSpec<Text, Text>(path: "/explore.Explorer/List", streamType: .serverStream)
  static let upload = MethodSpec<Text, Text>(path: "/explore.Explorer/Upload", streamType: .clientStream)
  static let talk = MethodSpec<Text, Text>(path: "/explore.Explorer/Talk", streamType: .bidirectionalStream)
}

/// A server's answer to a text, and the time when it was made.
struct Answer {
  let text: String
  let time: Duration

  init(_ text: String, at time: Duration) {
    self.text = text
    self.time = time
  }

  /// - Returns: Nil if the message is not an answer.
  init?(_ message: Text) {
    let parts = message.value.split(separator: "@")
    guard parts.count == 2, let time = Int64(parts[1]) else { return nil }
    self.init(String(parts[0]), at: .nanoseconds(time))
  }

  var message: Text { Text("\(self.text)@\(Int64(self.time / .nanoseconds(1)))") }
}
