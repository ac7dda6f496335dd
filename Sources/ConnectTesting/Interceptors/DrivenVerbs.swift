internal import Connect

/// Makes the verbs of one kind of call from the parts that a pipeline passes in and out. Nil stands for a part that the
/// kind of call does not have.
struct DrivenVerbs<OfRequest: Sendable, OfMessage: Sendable, OfResult: Sendable>: Sendable {
  let isUnary: Bool
  let passed: @Sendable (RequestPart) -> OfRequest?
  let failed: @Sendable (ConnectError) -> OfRequest
  let answered: @Sendable ([ResultPart]) -> OfRequest?
  let message: @Sendable (RequestPart) -> OfMessage?
  let droppedMessage: OfMessage?
  let result: @Sendable (ResultPart) -> OfResult?
  let retried: @Sendable (RequestPart, Duration) -> OfResult?
  let droppedResult: OfResult?
}

/// The verbs of unary calls, which have no request messages but the one in the request.
typealias UnaryVerbs<Message: Sendable, Response: Sendable> = DrivenVerbs<
  RequestVerb<HTTPRequest<Message>, Response>,
  StreamDataVerb<Never>,
  ResponseVerb<HTTPRequest<Message>, Response>
>

typealias StreamVerbs<Input: Sendable, Output: Sendable> = DrivenVerbs<
  RequestVerb<HTTPRequest<Void>, StreamAnswer<Output>>,
  StreamDataVerb<Input>,
  StreamResultVerb<Output>
>

extension DrivenVerbs {
  static func unary<Message, Response: DrivenResponse>() -> Self where Self == UnaryVerbs<Message, Response> {
    UnaryVerbs(
      isUnary: true,
      passed: { part in HTTPRequest<Message>(part).map { .proceed(.success($0)) } },
      failed: { .proceed(.failure($0)) },
      answered: { results in results.last.flatMap { Response($0) }.map { .answer($0) } },
      message: { _ in nil },
      droppedMessage: nil,
      result: { part in Response(part).map { .proceed($0) } },
      retried: { part, delay in HTTPRequest<Message>(part).map { .retry($0, after: delay) } },
      droppedResult: nil
    )
  }

  static func stream<Input, Output>() -> Self where Self == StreamVerbs<Input, Output> {
    StreamVerbs(
      isUnary: false,
      passed: { part in
        guard case .head(let head) = part else { return nil }
        return .proceed(.success(HTTPRequest(head: head)))
      },
      failed: { .proceed(.failure($0)) },
      answered: { results in .answer(StreamAnswer(results.map { StreamResult($0) })) },
      message: { part in
        switch part {
        case .message(let message): .proceed(MessageBox<Input>.of(message).message)
        case .bytes(let bytes): (bytes as? Input).map { .proceed($0) }
        case .whole, .wholeBytes, .head, .end: nil
        }
      },
      droppedMessage: .drop,
      result: { .proceed(StreamResult($0)) },
      retried: { part, delay in
        guard case .head(let head) = part else { return nil }
        return .retry(HTTPRequest(head: head), after: delay)
      },
      droppedResult: .drop
    )
  }
}

/// A unary response, and the part that carries it.
protocol DrivenResponse: Sendable {
  /// Nil if the part is of another level.
  init?(_ result: ResultPart)
  var resultPart: ResultPart { get }
}

extension ResponseMessage: DrivenResponse {
  init?(_ result: ResultPart) {
    guard case .whole(let response) = result else { return nil }
    self.init(response)
  }

  var resultPart: ResultPart { .whole(self.erased) }
}

extension HTTPResponse: DrivenResponse {
  init?(_ result: ResultPart) {
    guard case .wholeBytes(let response) = result else { return nil }
    self = response
  }

  var resultPart: ResultPart { .wholeBytes(self) }
}

extension StreamAnswer {
  fileprivate init(_ results: [StreamResult<Message>]) {
    self.init(messages: results.compactMap(\.message))
    for result in results {
      switch result {
      case .headers(let headers): self.headers = headers
      case .message: break
      case .complete(_, let error, let trailers):
        self.error = error
        self.trailers = trailers
      }
    }
  }
}
