internal import Connect
internal import ConnectTesting

/// Logs how many messages a stream has had.
///
/// The bug: it reads the stream to its end before it gives anything on. The caller of a live stream gets nothing.
struct GatheredStream: AsyncStreamInterceptor {
  let isMended: Bool
  let log: @Sendable (Int) -> Void

  func interceptStream<Input: Sendable, Output: Sendable>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    if self.isMended { return self.logging(try await next(request)) }
    var results: [StreamResult<Output>] = []
    for try await result in try await next(request).results { results.append(result) }
    self.log(results.count)
    return StreamResponse(results: PulledSequence(results))
  }

  private func logging<Output>(_ response: StreamResponse<Output>) -> StreamResponse<Output> {
    let count = Counter()
    return StreamResponse(
      results: response.results.mapped { result in
        count.add()
        if case .complete = result { self.log(count.value) }
        return result
      }
    )
  }
}

extension ExplorationCase {
  static let gatheredStream = ExplorationCase(
    "GatheredStream",
    source: "launchdarkly/okhttp-eventsource#57",
    breaking: ["what is there reaches the caller"]
  ) { isMended in
    InterceptorExplorer { world in
      Subject { _ in GatheredStream(isMended: isMended) { world.note("a stream of \($0)") } }
    }
    .methods([.serverStream, .bidirectionalStream])
    .server(.answers(.ok, .headersThenNothing))
    .neighbours(false)
    .check("what is there reaches the caller") { run in run.headersArriveAtOnce }
  }
}
