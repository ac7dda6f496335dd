internal import Connect
internal import ConnectTesting

/// Collects a short stream, and begins again if it breaks.
///
/// The bug: what came before the stream broke is there twice.
struct DoubledMessages: AsyncStreamInterceptor {
  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    var answer = StreamAnswer<Output>(messages: [])
    for attempt in 1...3 {
      for try await result in try await next(request).results {
        switch result {
        case .headers(let headers): answer.headers = headers
        case .message(let message): answer.messages.append(message)
        case .complete(_, let error, let trailers):
          answer.error = error
          answer.trailers = trailers
        }
      }
      guard answer.error?.code == .unavailable, attempt < 3 else { break }
    }
    return StreamResponse(answer)
  }
}

extension ExplorationCase {
  static let doubledMessages = ExplorationCase(
    "DoubledMessages",
    source: "sourcegraph/sourcegraph-public-snapshot#59145",
    breaking: ["messages arrive as they were sent"],
    InterceptorExplorer(of: { _ in DoubledMessages() })
      .methods([.serverStream])
      .server(.answers(.ok, .unavailable, .messagesThenFailure(.unavailable)))
  )
}
