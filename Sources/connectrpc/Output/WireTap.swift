import Connect

/// Prints what goes over the wire besides messages, on standard error.
struct WireTap: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { Self.show($0.with(())) },
      updateResponse: { response in
        Self.show(response.httpStatus, response.httpHeaders.isEmpty ? response.headers : response.httpHeaders)
        Self.show(trailers: response.trailers)
        return .proceed
      },
      responseMetricsFunction: { metrics, proceed in
        Self.show(metrics)
        proceed(metrics)
      }
    )
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        Self.show(request)
        proceed(.success(request))
      },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers(let headers): Self.show(nil, headers)
        case .message: break
        case .complete(_, _, let trailers): Self.show(trailers: trailers)
        }
        proceed(result)
      },
      responseMetricsFunction: { metrics, proceed in
        Self.show(metrics)
        proceed(metrics)
      }
    )
  }

  private static func show(_ request: HTTPRequest<Void>) {
    Console.error("\(Console.dim(">")) \(request.isGET ? "GET" : "POST") \(request.url)")
    self.line(">", "content-type", request.contentType)
    self.show(">", request.headers)
  }

  private static func show(_ status: Int?, _ headers: Headers) {
    if let status { Console.error("\(Console.dim("<")) HTTP status \(status)") }
    self.show("<", headers)
  }

  private static func show(trailers: Headers) {
    guard !trailers.isEmpty else { return }
    Console.error("\(Console.dim("<")) trailers")
    self.show("<", trailers)
  }

  private static func show(_ metrics: HTTPMetrics) {
    guard let connection = metrics.connection else { return }
    let peer = connection.remoteAddress.map { ", \($0)" } ?? ""
    Console.error(
      "\(Console.dim("*")) \(connection.version.rawValue)\(peer), \(metrics.requestBodyBytes) bytes sent, "
        + "\(metrics.responseBodyBytes) received"
    )
  }

  private static func show(_ mark: String, _ headers: Headers) {
    for field in headers { self.line(mark, field.name, field.value) }
  }

  private static func line(_ mark: String, _ name: String, _ value: String) {
    Console.error("\(Console.dim(mark)) \(Console.name(name)): \(Console.line(value))")
  }
}
