/// An interceptor that has something of a call and has not passed it on, as messages name it.
struct HookHolder: CustomStringConvertible {
  enum Held {
    case request
    case requestMessage
    case headers
    case response
  }

  let interceptor: any Interceptor.Type
  let held: Held

  var description: String {
    let what =
      switch self.held {
      case .request: "the request"
      case .requestMessage: "a request message"
      case .headers: "the response's headers"
      case .response: "the response"
      }
    return "\(self.interceptor) has \(what)"
  }
}
