internal import Connect
internal import ConnectTesting

/// Gives each payment a key, so that the server does not take it twice, and repeats it if the server was unavailable.
///
/// The bug: each attempt has a key of its own.
final class NewKeys: Interceptor {
  private let isMended: Bool
  private let makeKey: () -> String
  private var key: String?
  private var attempts = 0

  init(isMended: Bool, makeKey: @escaping () -> String) {
    self.isMended = isMended
    self.makeKey = makeKey
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { request in
        self.attempts += 1
        if self.key == nil || !self.isMended { self.key = self.makeKey() }
        request.headers["idempotency-key"] = [self.key ?? ""]
      },
      updateResponse: { response in
        response.code == .unavailable && self.attempts < 3 ? .retry(after: .milliseconds(100)) : .proceed
      }
    )
  }
}

extension ExplorationCase {
  static let newKeys = ExplorationCase(
    "NewKeys",
    source: "woocommerce/woocommerce-square#106",
    breaking: ["one key for each call"]
  ) { isMended in
    InterceptorExplorer { world in Subject { _ in NewKeys(isMended: isMended) { world.token() } } }
      .calls(2)
      .server(.answers(.ok, .unavailable, .reset))
      .check("one key for each call") { run in
        run.calls.allSatisfy { call in Set(call.attempts.map { $0.headers["idempotency-key"] }).count <= 1 }
      }
  }
}
