internal import Connect
internal import ConnectTesting

/// Lets a stream end well that a proxy has cut off after a while, since the caller asks again for the rest.
///
/// The bug: each error after a message is taken for such an end.
final class CutStream: Interceptor {
  private var count = 0

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(streamResultFunction: { result, proceed in
      switch result {
      case .headers: proceed(result)
      case .message:
        self.count += 1
        proceed(result)
      case .complete(_, let error, let trailers):
        let isCut = error != nil && self.count > 0
        proceed(isCut ? .complete(code: .ok, error: nil, trailers: trailers) : result)
      }
    })
  }
}

extension ExplorationCase {
  static let cutStream = ExplorationCase(
    "CutStream",
    source: "hyperium/h2#806",
    breaking: ["errors are not swallowed"],
    InterceptorExplorer(of: { _ in CutStream() })
      .methods([.serverStream, .bidirectionalStream])
      .server(
        .answers(.ok, .unavailable, .messagesThenFailure(.unavailable), .messagesThenFailure(.internalError))
      )
  )
}
