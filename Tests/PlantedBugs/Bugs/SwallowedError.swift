internal import Connect
internal import ConnectTesting
internal import NIOCore

/// Counts errors.
///
/// The bug: who has counted the error forgets to pass it on.
final class SwallowedError: Interceptor {
  private let errors: Counter

  init(errors: Counter) {
    self.errors = errors
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateResponse: { [errors] response in
      guard response.error != nil else { return .proceed }
      errors.add()
      response = HTTPResponse(headers: response.headers, message: ByteBuffer(), trailers: response.trailers)
      return .proceed
    })
  }
}

extension ExplorationCase {
  static let swallowedError = ExplorationCase(
    "SwallowedError",
    source: "axios/axios#2241",
    breaking: ["errors are not swallowed"],
    InterceptorExplorer { _ in
      let errors = Counter()
      return Subject { _ in SwallowedError(errors: errors) }
    }
  )
}
