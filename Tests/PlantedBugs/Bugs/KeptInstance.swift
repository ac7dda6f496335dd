internal import Connect
internal import ConnectTesting

/// Shows a token, and counts calls that had one.
///
/// The bug: what is to be done at the end holds the interceptor, and is only let go of when the server has answered.
final class KeptInstance: Interceptor {
  private let token: @Sendable () async throws -> String
  private let calls: Counter
  private var finish: (() -> Void)?

  init(token: @escaping @Sendable () async throws -> String, calls: Counter) {
    self.token = token
    self.calls = calls
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.finish = { self.calls.add() }
        proceed.task {
          do {
            var request = request
            request.headers["authorization"] = ["Bearer \(try await self.token())"]
            proceed(.success(request))
          } catch {
            proceed(.failure(ConnectError(error, code: .unauthenticated)))
          }
        }
      },
      responseFunction: { response, proceed in
        self.finish?()
        self.finish = nil
        proceed(response)
      }
    )
  }
}

extension ExplorationCase {
  static let keptInstance = ExplorationCase(
    "KeptInstance",
    source: "apollographql/apollo-ios#3057",
    breaking: ["instances are released"],
    InterceptorExplorer { world in
      let calls = Counter()
      return Subject { _ in
        let token = { @Sendable in
          try await world.step("token endpoint", canFail: true)
          return world.token()
        }
        return KeptInstance(token: token, calls: calls)
      }
    }
    .allowing(.failure)
  )
}
