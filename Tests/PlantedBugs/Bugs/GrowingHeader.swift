internal import Connect
internal import ConnectTesting
internal import NIOCore

/// Tells the server the number of the attempt, and repeats a call that the server was too busy for.
///
/// The bug: the request of the next attempt already has the number of this one.
final class GrowingHeader: Interceptor {
  private var attempt = 0
  private var request: HTTPRequest<ByteBuffer>?

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        self.attempt += 1
        var request = request
        request.headers.add(name: "x-attempt", value: "\(self.attempt)")
        self.request = request
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        guard response.code == .unavailable, self.attempt < 3 else { return proceed(response) }
        proceed.retry(self.request, after: .milliseconds(100))
      }
    )
  }
}

extension ExplorationCase {
  static let growingHeader = ExplorationCase(
    "GrowingHeader",
    source: "qonversion/qonversion-ios-sdk#762",
    breaking: ["one number for each attempt", "headers do not pile up"],
    InterceptorExplorer(of: { _ in GrowingHeader() })
      .server(.answers(.ok, .unavailable))
      .check("one number for each attempt") { run in
        run.attempts.allSatisfy { $0.headers["x-attempt"].count == 1 }
      }
  )
}
