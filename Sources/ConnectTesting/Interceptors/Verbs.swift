public import Connect

// What a hook proceeded with, taken apart for assertions. Each property is nil if the hook did something else.

extension RequestVerb {
  /// The request that was passed on.
  public var request: Request? {
    if case .proceed(.success(let request)) = self { request } else { nil }
  }

  /// The error that the call was failed with.
  public var error: ConnectError? {
    if case .proceed(.failure(let error)) = self { error } else { nil }
  }

  /// The response that the call was answered with.
  public var answer: Response? {
    if case .answer(let response) = self { response } else { nil }
  }
}

extension ResponseVerb {
  /// The response that was passed on.
  public var response: Response? {
    if case .proceed(let response) = self { response } else { nil }
  }

  /// How long the hook wants to wait before a new attempt, if it asked for one.
  public var retryDelay: Duration? {
    switch self {
    case .retry(_, let delay), .restart(_, let delay): delay
    case .proceed: nil
    }
  }

  /// The request of the new attempt; nil also if it is to be that of the caller.
  public var retryRequest: Request? {
    switch self {
    case .retry(let request, _), .restart(let request, _): request
    case .proceed: nil
    }
  }

  /// Where the new attempt starts, if the hook asked for one.
  public var retryStart: RetryStart? {
    switch self {
    case .retry: .level
    case .restart: .start
    case .proceed: nil
    }
  }
}

extension StreamDataVerb {
  /// The message that was passed on.
  public var message: Message? {
    if case .proceed(let message) = self { message } else { nil }
  }

  /// Whether nothing is passed on.
  public var isDrop: Bool {
    if case .drop = self { true } else { false }
  }
}

extension StreamResultVerb {
  /// The result that was passed on.
  public var result: StreamResult<Message>? {
    if case .proceed(let result) = self { result } else { nil }
  }

  /// How long the hook wants to wait before a new attempt, if it asked for one.
  public var retryDelay: Duration? {
    switch self {
    case .retry(_, let delay), .restart(_, let delay): delay
    case .proceed, .drop: nil
    }
  }

  /// The request of the new attempt; nil also if it is to be that of the caller.
  public var retryRequest: HTTPRequest<Void>? {
    switch self {
    case .retry(let request, _), .restart(let request, _): request
    case .proceed, .drop: nil
    }
  }

  /// Where the new attempt starts, if the hook asked for one.
  public var retryStart: RetryStart? {
    switch self {
    case .retry: .level
    case .restart: .start
    case .proceed, .drop: nil
    }
  }

  /// Whether nothing is passed on.
  public var isDrop: Bool {
    if case .drop = self { true } else { false }
  }
}
