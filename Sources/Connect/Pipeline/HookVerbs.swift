extension RequestVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(.success(let request)): (request as? any PartConvertible).map { .send($0.part) } ?? .drop
    case .proceed(.failure(let error)): .fail(error)
    case .answer(let response): .answer((response as? any ResultConvertible)?.results ?? [])
    }
  }
}

extension ResponseVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let response):
      (response as? any ResultConvertible)?.results.first.map { .receive($0) } ?? .drop
    case .retry(let request, let delay):
      .retry((request as? any PartConvertible)?.part, after: delay)
    }
  }
}

extension StreamDataVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let message): .send(.message(MessageBox(message)))
    case .drop: .drop
    }
  }
}

extension StreamResultVerb: HookVerb {
  var action: HookAction {
    switch self {
    case .proceed(let result): .receive(result.part)
    case .retry(let request, let delay): .retry(request?.part, after: delay)
    case .drop: .drop
    }
  }
}

extension HTTPMetrics: HookVerb {
  var action: HookAction { .metrics(self) }
}

/// A request, whatever the type of its message.
private protocol PartConvertible {
  var part: RequestPart { get }
}

/// A response, whatever the type of its messages.
private protocol ResultConvertible {
  var results: [ResultPart] { get }
}

extension HTTPRequest: PartConvertible {
  /// The whole request; that of a stream has an empty message.
  @inlinable
  @inline(__always)
  package var part: RequestPart { .whole(self.head, self.box) }
}

extension ResponseMessage: ResultConvertible {
  var results: [ResultPart] { [.whole(self.erased)] }
}

extension HTTPResponse: ResultConvertible {
  var results: [ResultPart] { [.wholeBytes(self)] }
}

extension StreamAnswer: ResultConvertible {
  /// The answer as the results of a stream.
  var results: [ResultPart] {
    [.headers(self.headers)] + self.messages.map { .message(MessageBox($0)) }
      + [.end(self.error, trailers: self.trailers)]
  }
}
