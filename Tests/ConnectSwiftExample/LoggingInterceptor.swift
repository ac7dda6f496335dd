import ConnectSwiftCompatibility
import Foundation

/// Writes a line for each request, response and stream.
public final class LoggingInterceptor: Interceptor {
  private let log: @Sendable (String) -> Void
  private let start = Date()

  public init(log: @escaping @Sendable (String) -> Void) {
    self.log = log
  }

  @Sendable
  public func handleResponseMetrics(
    _ metrics: HTTPMetrics,
    proceed: @escaping @Sendable (HTTPMetrics) -> Void
  ) {
    self.log("metrics")
    proceed(metrics)
  }
}

extension LoggingInterceptor: UnaryInterceptor {
  @Sendable
  public func handleUnaryRawRequest(
    _ request: HTTPRequest<Data?>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Data?>, ConnectError>) -> Void
  ) {
    self.log("\(request.method.rawValue) \(request.url.path) \(request.message?.count ?? 0) bytes")
    proceed(.success(request))
  }

  @Sendable
  public func handleUnaryRawResponse(
    _ response: HTTPResponse,
    proceed: @escaping @Sendable (HTTPResponse) -> Void
  ) {
    let status = response.tracingInfo?.httpStatus ?? 0
    self.log("\(response.code) \(status) \(response.message?.count ?? 0) bytes")
    if let error = response.error {
      self.log("error: \(error.localizedDescription)")
    }
    proceed(response)
  }
}

extension LoggingInterceptor: StreamInterceptor {
  @Sendable
  public func handleStreamStart(
    _ request: HTTPRequest<Void>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Void>, ConnectError>) -> Void
  ) {
    self.log("stream \(request.url.lastPathComponent)")
    proceed(.success(request))
  }

  @Sendable
  public func handleStreamRawInput(_ input: Data, proceed: @escaping @Sendable (Data) -> Void) {
    self.log("sent \(input.count) bytes")
    proceed(input)
  }

  @Sendable
  public func handleStreamResult<Message: ProtobufMessage>(
    _ result: StreamResult<Message>,
    proceed: @escaping @Sendable (StreamResult<Message>) -> Void
  ) {
    switch result {
    case .headers: self.log("headers")
    case .message: self.log("received \(Message.protoMessageName)")
    case .complete(let code, _, _): self.log("complete \(code)")
    }
    proceed(result)
  }
}
