internal import Connect
internal import ConnectTesting

/// Shows a token.
///
/// The bug: if there is no token, the hook says nothing.
final class ForgottenError: Interceptor {
  private let token: @Sendable () async throws -> String

  init(token: @escaping @Sendable () async throws -> String) {
    self.token = token
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(requestFunction: { request, proceed in
      proceed.task {
        guard let token = try? await self.token() else { return }
        var request = request
        request.headers["authorization"] = ["Bearer \(token)"]
        proceed(.success(request))
      }
    })
  }
}

extension ExplorationCase {
  static let forgottenError = ExplorationCase(
    "ForgottenError",
    source: "cfug/dio#2138",
    breaking: ["each hook goes on", "each call ends"],
    InterceptorExplorer { world in
      Subject { _ in
        ForgottenError {
          try await world.step("token endpoint", canFail: true)
          return world.token()
        }
      }
    }
  )
}
