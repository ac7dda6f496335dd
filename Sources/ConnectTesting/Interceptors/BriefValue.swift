internal import Connect
internal import NIOCore

/// A value on one line, for assertions and their messages.
func describe(_ value: Any) -> String {
  if let value = value as? any BriefValue { return value.brief }
  if value is Void { return "" }
  let line = String(describing: value).split(whereSeparator: \.isWhitespace).joined(separator: " ")
  return shortened(line)
}

/// The text, or only its beginning if it is long.
func shortened(_ text: String, to limit: Int = 200) -> String {
  let start = text.unicodeScalars.prefix(limit)
  return start.endIndex == text.endIndex ? text : "\(String(start))…"
}

/// A value of ``Connect`` with a special text for ``describe(_:)``.
protocol BriefValue {
  var brief: String { get }
}

/// The title, with `text` after a colon if there is any.
private func behind(_ title: String, _ text: String) -> String {
  text.isEmpty ? title : "\(title): \(text)"
}

extension ByteBuffer: BriefValue {
  var brief: String {
    let text = String(buffer: self)
    let isText =
      text.utf8.elementsEqual(self.readableBytesView) && !text.contains { $0.isNewline || $0 == "\0" }
    return isText && text.count <= 200 ? text : "\(self.readableBytes) bytes"
  }
}

extension HTTPRequest: BriefValue {
  var brief: String { describe(self.message) }
}

extension ConnectError: BriefValue {
  var brief: String { behind(self.code.name, self.message ?? "") }
}

extension HTTPResponse: BriefValue {
  var brief: String { self.error?.brief ?? behind(self.code.name, self.message.brief) }
}

extension ResponseMessage: BriefValue {
  var brief: String {
    switch self.result {
    case .success(let message): behind(self.code.name, describe(message))
    case .failure(let error): error.brief
    }
  }
}

extension StreamResult: BriefValue {
  var brief: String {
    switch self {
    case .headers: "headers"
    case .message(let message): behind("message", describe(message))
    case .complete(let code, let error, _): "end \(error?.brief ?? code.name)"
    }
  }
}

extension StreamAnswer: BriefValue {
  var brief: String {
    (self.messages.map { describe($0) } + [self.error?.brief ?? "end ok"]).joined(separator: ", ")
  }
}

extension HTTPMetrics: BriefValue {
  var brief: String { "attempt \(self.attempt)" }
}

extension RequestVerb: BriefValue {
  var brief: String {
    switch self {
    case .proceed(.success(let request)): behind("request", describe(request))
    case .proceed(.failure(let error)): "failure \(error.brief)"
    case .answer(let response): "answer \(describe(response))"
    }
  }
}

extension ResponseVerb: BriefValue {
  var brief: String {
    switch self {
    case .proceed(let response): "response \(describe(response))"
    case .retry(_, let delay): "retry after \(delay)"
    case .restart(_, let delay): "retry from the start after \(delay)"
    }
  }
}

extension StreamDataVerb: BriefValue {
  var brief: String {
    switch self {
    case .proceed(let message): behind("message", describe(message))
    case .drop: "drop"
    }
  }
}

extension StreamResultVerb: BriefValue {
  var brief: String {
    switch self {
    case .proceed(let result): result.brief
    case .retry(_, let delay): "retry after \(delay)"
    case .restart(_, let delay): "retry from the start after \(delay)"
    case .drop: "drop"
    }
  }
}
