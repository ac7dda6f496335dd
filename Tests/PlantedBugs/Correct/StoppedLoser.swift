internal import Connect
internal import ConnectTesting
internal import NIOCore

/// Asks a mirror, too, if the server takes longer than a second, and takes the answer that comes first. The loser stops.
struct StoppedLoser: AsyncUnaryByteInterceptor {
  let clock: any Clock<Duration>
  let askMirror: @Sendable () async throws -> HTTPResponse

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    try await withThrowingTaskGroup(of: HTTPResponse?.self) { group in
      group.addTask { try await next(request) }
      group.addTask { await self.mirror() }
      defer { group.cancelAll() }
      for try await case let answer? in group { return answer }
      throw CancellationError()
    }
  }

  /// - Returns: Nil if the server has answered before, or if the mirror fails: the caller waits for the server alone.
  private func mirror() async -> HTTPResponse? {
    do {
      try await self.clock.sleep(for: .seconds(1))
      return try await self.askMirror()
    } catch {
      return nil
    }
  }
}

extension ExplorationCase {
  static let stoppedLoser = ExplorationCase(
    "StoppedLoser",
    InterceptorExplorer { world in
      Subject { _ in
        StoppedLoser(clock: world.clock) {
          try await world.step("mirror", canFail: true)
          return HTTPResponse()
        }
      }
    }
    .mirrored()
  )
}
