internal import Connect

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
