/// What flows down a stream: the head, messages, the end.
enum RequestPart<Message: Sendable>: Sendable {
  case head(HTTPRequest<Void>)
  case message(Message)
  case end
}
