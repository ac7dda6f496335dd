internal import Connect
internal import ConnectTesting

/// Puts the time that the server took into a header of the response.
///
/// The bug: it makes a new response, and of the server's headers it keeps only those that it knows.
final class LostHeaders: Interceptor {
  private let stopwatch: Stopwatch

  init(clock: any Clock<Duration>) {
    self.stopwatch = Stopwatch(clock)
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(responseFunction: { response, proceed in
      guard response.error == nil else { return proceed(response) }
      var headers: Headers = ["x-duration": ["\(self.stopwatch.elapsed)"]]
      headers["content-type"] = response.headers["content-type"]
      proceed(
        HTTPResponse(
          headers: headers,
          message: response.message,
          trailers: response.trailers,
          httpStatus: 200
        )
      )
    })
  }
}

extension ExplorationCase {
  static let lostHeaders = ExplorationCase(
    "LostHeaders",
    source: "chimurai/http-proxy-middleware#562",
    breaking: ["headers and trailers arrive"],
    InterceptorExplorer { world in Subject { _ in LostHeaders(clock: world.clock) } }
  )
}
