internal import Connect

/// A call as a cassette has it: what the client and the server sent, in the order in which it passed the endpoint.
struct RecordedExchange: Sendable, Hashable {
  struct Part: Sendable, Hashable {
    /// Since the stream's start, in milliseconds.
    var time: Int
    var event: Event
  }

  enum Event: Sendable, Hashable {
    /// A message of the request.
    case send(Payload)
    /// The request's end, with its trailers.
    case finish(Headers)
    /// The response's status and headers.
    case head(status: Int, headers: Headers)
    /// A message of the response.
    case receive(Payload)
    /// The response's end, with its trailers.
    case end(Headers)
    case fail(Failure)
    /// The client cancelled the call.
    case cancel
  }

  /// A transport's error in place of a response.
  struct Failure: Sendable, Hashable {
    /// What completes the error's message when it is shown.
    enum Subject: String, Sendable {
      case connection, version, reset
    }

    var code: Code
    var message: String?
    var isUnprocessed: Bool
    /// Whether no interceptor repeats the call.
    var isFinal = false
    var subject: Subject?
  }

  /// `/package.Service/Method`.
  var path: String
  var isGET: Bool
  /// Protocol and codec.
  var wire: String
  /// The version of HTTP; nil if there was no connection.
  var version: HTTPConnectionInfo.Version?
  /// The request's headers.
  var headers: Headers
  var parts: [Part]

  /// The messages of the request.
  var messages: [Payload] {
    self.parts.compactMap { if case .send(let payload) = $0.event { payload } else { nil } }
  }
}

extension RecordedExchange.Failure {
  init(_ failure: HTTPStreamFailure) {
    self.code = failure.error.code
    self.message = failure.error.message
    self.isUnprocessed = failure.isUnprocessed
    self.isFinal = failure.error.isFinal
    switch failure.error.unnamed {
    case .connection, .ended: self.subject = .connection
    case .version: self.subject = .version
    case .reset: self.subject = .reset
    case .trailers, .response, nil: self.subject = nil
    }
  }

  var failure: HTTPStreamFailure {
    var error = ConnectError(code: self.code, message: self.message)
    error.isFinal = self.isFinal
    switch self.subject {
    case .connection: error.unnamed = .connection
    case .version: error.unnamed = .version
    case .reset: error.unnamed = .reset
    case nil: break
    }
    return HTTPStreamFailure(error: error, isUnprocessed: self.isUnprocessed)
  }
}

// MARK: - JSON

extension RecordedExchange {
  /// - Parameter hasTimes: Whether the times are written.
  func json(hasTimes: Bool) -> JSONValue {
    var members: [String: JSONValue] = [
      "call": .string(self.path),
      "http": .string(self.isGET ? "GET" : "POST"),
      "wire": .string(self.wire),
      "headers": self.headers.json,
      "parts": .array(self.parts.map { $0.json(hasTime: hasTimes) }),
    ]
    if let version = self.version { members["over"] = .string(version.rawValue) }
    return .members(members)
  }
}

extension RecordedExchange.Part {
  fileprivate func json(hasTime: Bool) -> JSONValue {
    var members: [String: JSONValue] = hasTime ? ["ms": .number("\(self.time)")] : [:]
    switch self.event {
    case .send(let payload): members["send"] = payload.json
    case .finish(let trailers): members["finish"] = trailers.json
    case .head(let status, let headers):
      members["head"] = .members(["status": .number("\(status)"), "headers": headers.json])
    case .receive(let payload): members["receive"] = payload.json
    case .end(let trailers): members["end"] = trailers.json
    case .fail(let failure):
      var fields: [String: JSONValue] = ["code": .string(failure.code.name)]
      if let message = failure.message { fields["message"] = .string(message) }
      if failure.isUnprocessed { fields["isUnprocessed"] = .bool(true) }
      if failure.isFinal { fields["isFinal"] = .bool(true) }
      if let subject = failure.subject { fields["subject"] = .string(subject.rawValue) }
      members["fail"] = .members(fields)
    case .cancel: members["cancel"] = .object([])
    }
    return .members(members)
  }
}

extension Payload {
  fileprivate var json: JSONValue {
    var members: [String: JSONValue] = [:]
    switch self.content {
    case .json(let value): members["json"] = value
    case .text(let text): members["text"] = .string(text)
    case .bytes: members["base64"] = .string(self.line)
    case .fields(let fields): members["fields"] = fields.json
    case .cut(let cut):
      members["cut"] = .members([
        "flags": .number("\(cut.flags)"), "length": .number("\(cut.length)"),
        "received": .number("\(cut.received)"),
      ])
    }
    if self.flags != 0 { members["flags"] = .number("\(self.flags)") }
    if self.isCompressed { members["isCompressed"] = .bool(true) }
    return .members(members)
  }
}

extension Headers {
  /// An object with a text for each name, or a list of texts.
  fileprivate var json: JSONValue {
    var members: [String: JSONValue] = [:]
    for name in Set(self.map(\.name)) {
      let values = self[name].map(JSONValue.string)
      members[name] = values.count == 1 ? values[0] : .array(values)
    }
    return .members(members)
  }
}
