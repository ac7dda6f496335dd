internal import Connect
internal import ConnectTesting

/// Takes a lease for each stream, and renews it every ten seconds.
///
/// The bug: a stream that is cancelled while the lease is fetched renews it for ever.
final class EndlessPoller: Interceptor {
  private let clock: any Clock<Duration>
  private let take: @Sendable () async throws -> Void
  private let renew: @Sendable () async throws -> Void
  private var renewal: Task<Void, any Error>?

  init(
    clock: any Clock<Duration>,
    take: @escaping @Sendable () async throws -> Void,
    renew: @escaping @Sendable () async throws -> Void
  ) {
    self.clock = clock
    self.take = take
    self.renew = renew
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        proceed.task {
          do {
            try await self.take()
          } catch {
            return proceed(.failure(ConnectError(error, code: .unavailable)))
          }
          self.renewal = Task { [clock = self.clock, renew = self.renew] in
            while true {
              try await clock.sleep(for: .seconds(10))
              try await renew()
            }
          }
          proceed(.success(request))
        }
      },
      requestDataFunction: nil
    )
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in self.renewal?.cancel() })
  }
}

extension ExplorationCase {
  static let endlessPoller = ExplorationCase(
    "EndlessPoller",
    source: "open-telemetry/opentelemetry-go-contrib#839",
    breaking: ["background work ends", "nothing after the end"],
    InterceptorExplorer { world in
      Subject { _ in
        EndlessPoller(
          clock: world.clock,
          take: { try await world.step("take the lease") },
          renew: { try await world.step("renew the lease") }
        )
      }
    }
    .methods([.serverStream, .bidirectionalStream])
  )
}
