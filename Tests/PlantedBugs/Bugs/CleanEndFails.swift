internal import Connect
internal import ConnectTesting

/// Verifies each message of a stream, and that all of them are verified at the end.
///
/// The bug: the end may come while the last message is verified.
final class CleanEndFails: Interceptor {
  private let verify: @Sendable () async throws -> Void
  private var received = 0
  private var verified = 0

  init(verify: @escaping @Sendable () async throws -> Void) {
    self.verify = verify
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(streamResultFunction: { result, proceed in
      switch result {
      case .headers: proceed(result)
      case .message:
        self.received += 1
        proceed.task {
          do {
            try await self.verify()
            self.verified += 1
            proceed(result)
          } catch {
            proceed(.failed(ConnectError(error, code: .dataLoss)))
          }
        }
      case .complete(_, nil, _) where self.verified < self.received:
        proceed(.failed(ConnectError(code: .dataLoss, message: "the stream ended before its time")))
      case .complete: proceed(result)
      }
    })
  }
}

extension ExplorationCase {
  static let cleanEndFails = ExplorationCase(
    "CleanEndFails",
    source: "coder/coder#25339",
    breaking: ["good answers are not lost"],
    InterceptorExplorer { world in Subject { _ in CleanEndFails { try await world.step("verify") } } }
      .methods([.serverStream, .bidirectionalStream])
  )
}
