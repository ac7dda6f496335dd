internal import Connect
internal import SwiftProtobuf

/// Messages are texts: they need no generated code, and are quick in both codecs.
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

/// What a server answers to a text, and when.
struct Answer {
  let text: String
  let time: Duration

  init(_ text: String, at time: Duration) {
    self.text = text
    self.time = time
  }

  /// - Returns: Nil if the message is none.
  init?(_ message: Text) {
    let parts = message.value.split(separator: "@")
    guard parts.count == 2, let time = Int64(parts[1]) else { return nil }
    self.init(String(parts[0]), at: .nanoseconds(time))
  }

  var message: Text { Text("\(self.text)@\(Int64(self.time / .nanoseconds(1)))") }
}
