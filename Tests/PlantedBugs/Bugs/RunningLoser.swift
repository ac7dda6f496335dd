internal import Connect
internal import ConnectTesting
internal import NIOCore

/// Asks a mirror, too, if the server takes longer than a second, and takes the answer that comes first.
///
/// The bug: nobody stops the loser of the race.
struct RunningLoser: AsyncUnaryByteInterceptor {
  let clock: any Clock<Duration>
  let askMirror: @Sendable () async throws -> HTTPResponse

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    let (answers, continuation) = AsyncThrowingStream<HTTPResponse, any Error>.makeStream()
    Task {
      do {
        continuation.yield(try await next(request))
      } catch {
        continuation.finish(throwing: error)
      }
    }
    Task {
      try await self.clock.sleep(for: .seconds(1))
      continuation.yield(try await self.askMirror())
    }
    for try await answer in answers { return answer }
    throw CancellationError()
  }
}

extension ExplorationCase {
  static let runningLoser = ExplorationCase(
    "RunningLoser",
    source: "joshrotenberg/tower-resilience#393",
    breaking: ["nothing after the end", "the loser stops"],
    InterceptorExplorer { world in
      Subject { _ in
        RunningLoser(clock: world.clock) {
          try await world.step("mirror")
          return HTTPResponse()
        }
      }
    }
    .mirrored()
  )
}

extension InterceptorExplorer {
  /// What a race between the server and a mirror may do, and may not do.
  func mirrored() -> Self {
    self.server(.answers(.ok, .unavailable, .nothing))
      // The mirror's answer has neither the server's message nor its headers.
      .allowing(.recovery, .changedMessages, .changedMetadata)
      .check("the loser stops") { run in
        let end = run.calls.compactMap(\.endTime).max() ?? run.duration
        return run.steps.allSatisfy { $0.endTime ?? run.duration <= end }
      }
  }
}
