import ConnectSwiftCompatibility
import Foundation
import Synchronization

/// The steps of a test's interceptors and callbacks, in order.
final class Steps: Sendable {
  private let steps = Mutex<[String]>([])

  var all: [String] { self.steps.withLock { $0 } }

  func add(_ step: String) {
    self.steps.withLock { $0.append(step) }
  }
}

/// Records each of its hooks that runs, and may fail requests.
final class NotingInterceptor: UnaryInterceptor, StreamInterceptor {
  private let name: String
  private let steps: Steps
  private let failure: ConnectError?

  init(_ name: String, _ steps: Steps, failure: ConnectError? = nil) {
    self.name = name
    self.steps = steps
    self.failure = failure
  }

  private func note(_ hook: String) {
    self.steps.add("\(self.name) \(hook)")
  }

  private func result<Input>(_ request: HTTPRequest<Input>) -> Result<HTTPRequest<Input>, ConnectError> {
    self.failure.map { .failure($0) } ?? .success(request)
  }

  private static func kind<Output>(of result: StreamResult<Output>) -> String {
    switch result {
    case .headers: "headers"
    case .message: "message"
    case .complete(let code, _, _): "\(code)"
    }
  }

  func handleUnaryRequest<Message: ProtobufMessage>(
    _ request: HTTPRequest<Message>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
  ) {
    self.note("request")
    proceed(self.result(request))
  }

  func handleUnaryRawRequest(
    _ request: HTTPRequest<Data?>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Data?>, ConnectError>) -> Void
  ) {
    self.note("raw request")
    proceed(.success(request))
  }

  func handleUnaryRawResponse(_ response: HTTPResponse, proceed: @escaping @Sendable (HTTPResponse) -> Void) {
    self.note("raw response \(response.code)")
    proceed(response)
  }

  func handleUnaryResponse<Message: ProtobufMessage>(
    _ response: ResponseMessage<Message>,
    proceed: @escaping @Sendable (ResponseMessage<Message>) -> Void
  ) {
    self.note("response \(response.code)")
    proceed(response)
  }

  func handleResponseMetrics(_ metrics: HTTPMetrics, proceed: @escaping @Sendable (HTTPMetrics) -> Void) {
    self.note("metrics")
    proceed(metrics)
  }

  func handleStreamStart(
    _ request: HTTPRequest<Void>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Void>, ConnectError>) -> Void
  ) {
    self.note("start")
    proceed(self.result(request))
  }

  func handleStreamInput<Message: ProtobufMessage>(
    _ input: Message,
    proceed: @escaping @Sendable (Message) -> Void
  ) {
    self.note("input")
    proceed(input)
  }

  func handleStreamRawInput(_ input: Data, proceed: @escaping @Sendable (Data) -> Void) {
    self.note("raw input")
    proceed(input)
  }

  func handleStreamRawResult(
    _ result: StreamResult<Data>,
    proceed: @escaping @Sendable (StreamResult<Data>) -> Void
  ) {
    self.note("raw \(Self.kind(of: result))")
    proceed(result)
  }

  func handleStreamResult<Message: ProtobufMessage>(
    _ result: StreamResult<Message>,
    proceed: @escaping @Sendable (StreamResult<Message>) -> Void
  ) {
    self.note(Self.kind(of: result))
    proceed(result)
  }
}
