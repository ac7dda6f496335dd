import Connect

/// Prints what comes over the wire besides messages, and what is known of the connection, on standard error. Requests are
/// printed by ``TappedClient``.
struct WireTap: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      updateRequest: { _ in },
      updateResponse: { response in
        Self.show(response.httpStatus, response.httpHeaders.isEmpty ? response.headers : response.httpHeaders)
        Self.show(trailers: response.trailers)
        return .proceed
      },
      responseMetricsFunction: Self.show
    )
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      streamResultFunction: { result, proceed in
        switch result {
        case .headers(let headers): Self.show(nil, headers)
        case .message: break
        case .complete(_, _, let trailers): Self.show(trailers: trailers)
        }
        proceed(result)
      },
      responseMetricsFunction: Self.show
    )
  }

  private static func show(_ status: Int?, _ headers: Headers) {
    if let status { self.line("<", "HTTP status \(status)") }
    self.show("<", headers)
  }

  private static func show(trailers: Headers) {
    guard !trailers.isEmpty else { return }
    self.line("<", "trailers")
    self.show("<", trailers)
  }

  private static func show(_ metrics: HTTPMetrics, _ proceed: Proceed<HTTPMetrics>) {
    defer { proceed(metrics) }
    guard let connection = metrics.connection else { return }
    let peer = connection.remoteAddress.map { ", \($0)" } ?? ""
    let sizes = "\(metrics.requestBodyBytes) bytes sent, \(metrics.responseBodyBytes) received"
    self.line("*", "\(connection.version.rawValue)\(peer), \(sizes)")
    guard let tls = connection.tls else { return }
    for line in TLSFacts(tls).lines { self.line("*", line) }
  }

  static func show(_ mark: String, _ headers: Headers) {
    for field in headers {
      Console.error("\(Console.dim(mark)) \(Console.name(field.name)): \(Console.line(field.value))")
    }
  }

  static func line(_ mark: String, _ text: String) {
    Console.error("\(Console.dim(mark)) \(Console.line(text))")
  }
}
