import ConnectSwiftCompatibility
import ConnectTesting
import Foundation
import LoopbackServer
import XCTest

final class UnaryInterceptorTests: XCTestCase {
  private let service = MemoryService()
  private let steps = Steps()
  private let failing = Connect_Test_V1_EchoRequest.with { $0.instruction = .init() }

  private func noting(_ name: String, failure: ConnectError? = nil) -> InterceptorFactory {
    InterceptorFactory { [steps] _ in NotingInterceptor(name, steps, failure: failure) }
  }

  func testRequestsPassInOrderAndResponsesInReverse() async throws {
    let client = self.service.client(self.noting("a"), self.noting("b"))
    let response = await client.echo(request: .with { $0.payload.text = "hi" })
    XCTAssertEqual(response.message?.payload.text, "hi")
    XCTAssertEqual(
      self.steps.all.filter { !$0.hasSuffix("metrics") },
      [
        "a request", "b request", "a raw request", "b raw request",
        "b raw response ok", "a raw response ok", "b response ok", "a response ok",
      ]
    )
    XCTAssertEqual(self.steps.all.filter { $0.hasSuffix("metrics") }, ["b metrics", "a metrics"])
  }

  func testFailedRequestDoesNotReachWhatIsInside() async {
    let failure = ConnectError(
      code: .aborted,
      message: "stop",
      exception: nil,
      details: [],
      metadata: ["x-why": ["test"]]
    )
    let client = self.service.client(
      self.noting("a"),
      self.noting("b", failure: failure),
      self.noting("c")
    )
    let response = await client.echo(request: .init())
    XCTAssertEqual(response.error?.code, .aborted)
    XCTAssertEqual(response.error?.message, "stop")
    XCTAssertEqual(response.error?.metadata, ["x-why": ["test"]])
    XCTAssertEqual(self.steps.all, ["a request", "b request", "a response aborted"])
    XCTAssertEqual(self.service.requests.values, [])
  }

  func testErrorPassesAllResponseHooks() async {
    let client = self.service.client(self.noting("a"))
    let response = await client.echo(request: self.failing)
    XCTAssertEqual(response.code, .notFound)
    XCTAssertEqual(response.error?.message, "no such payload")
    XCTAssertEqual(response.error?.metadata["x-reason"]?.first, "gone")
    let details: [Connect_Test_V1_ErrorInfo] = response.error?.unpackedDetails() ?? []
    XCTAssertEqual(details.map(\.reason), ["gone"])
    XCTAssertEqual(
      self.steps.all.filter { $0.contains("response") },
      ["a raw response not_found", "a response not_found"]
    )
  }

  /// What the hooks of one interceptor do to a call.
  private func client(_ interceptor: Editing) -> Connect_Test_V1_TestServiceClient {
    self.service.client(InterceptorFactory { _ in interceptor })
  }

  func testTypedHooksReplaceMessagesAndHeaders() async {
    let client = self.client(
      Editing(
        request: { message, headers in
          XCTAssertEqual(headers["content-type"], ["application/json"])
          XCTAssertEqual(headers["x-call"], ["1"])
          headers["Authorization"] = ["Bearer 42"]
          headers["x-call"] = nil
          message = "changed"
        },
        response: { $0 + "!" }
      )
    )
    let response = await client.echo(request: .with { $0.payload.text = "hi" }, headers: ["X-Call": ["1"]])
    XCTAssertEqual(response.message?.payload.text, "changed!")
    XCTAssertEqual(response.headers["x-server"], ["memory"])
    XCTAssertEqual(response.trailers, ["x-end": ["yes"]])
    let headers = self.service.requests.values.first
    XCTAssertEqual(headers?["authorization"], ["Bearer 42"])
    XCTAssertNil(headers?["x-call"])
    XCTAssertEqual(headers?["content-type"], ["application/json"])
  }

  func testRawHooksReplaceBytes() async throws {
    let other = try Connect_Test_V1_EchoRequest.with { $0.payload.text = "raw" }.jsonUTF8Data()
    let answer = try Connect_Test_V1_EchoResponse.with { $0.payload.text = "answer" }.jsonUTF8Data()
    let seen = Received<String>()
    let client = self.client(
      Editing(
        rawRequest: { data in
          seen.add(String(decoding: data ?? Data(), as: UTF8.self))
          return other
        },
        rawResponse: { response in
          seen.add(String(decoding: response.message ?? Data(), as: UTF8.self))
          XCTAssertEqual(response.tracingInfo?.httpStatus, 200)
          XCTAssertNil(response.error)
          return HTTPResponse(
            code: .ok,
            headers: ["x-new": ["1"]],
            message: answer,
            trailers: [:],
            error: nil,
            tracingInfo: response.tracingInfo
          )
        }
      )
    )
    let response = await client.echo(request: .with { $0.payload.text = "hi" })
    XCTAssertEqual(response.message?.payload.text, "answer")
    XCTAssertEqual(response.headers, ["x-new": ["1"]])
    XCTAssertEqual(seen.values, [#"{"payload":{"text":"hi"}}"#, #"{"payload":{"text":"raw"}}"#])
  }

  func testRawHookMakesAnErrorOfAResponseAndTheOtherWayRound() async throws {
    let failed = await self.client(
      Editing(rawResponse: { response in
        HTTPResponse(
          code: .dataLoss,
          headers: response.headers,
          message: nil,
          trailers: [:],
          error: nil,
          tracingInfo: nil
        )
      })
    ).echo(request: .init())
    XCTAssertEqual(failed.error?.code, .dataLoss)

    let data = try Connect_Test_V1_EchoResponse().jsonUTF8Data()
    let saved = await self.client(
      Editing(rawResponse: { response in
        XCTAssertEqual((response.error as? ConnectError)?.code, .notFound)
        XCTAssertEqual(response.tracingInfo?.httpStatus, 404)
        XCTAssertNil(response.message)
        return HTTPResponse(
          code: .ok,
          headers: [:],
          message: data,
          trailers: [:],
          error: nil,
          tracingInfo: response.tracingInfo
        )
      })
    ).echo(request: self.failing)
    XCTAssertEqual(saved.message, .init())
  }

  func testNewRequestOfACallThatGoesAsGETIsOne() async {
    let config = ProtocolClientConfig(
      host: "http://memory",
      unaryGET: .alwaysEnabled,
      interceptors: [InterceptorFactory { _ in Editing(request: { _, headers in headers["x-new"] = ["1"] }) }]
    )
    let response = await self.service.client(config).lookup(request: .with { $0.key = "k" })
    XCTAssertEqual(response.message?.value, "GET k")
  }

  func testURLsOfRequests() async {
    let urls = Received<URL>()
    let response = await self.client(
      Editing(url: { url in
        urls.add(url)
        return URL(string: "http://other:8080/base/connect.test.v1.TestService/Echo?a=b%20c")!
      })
    ).echo(request: .with { $0.payload.text = "hi" })
    XCTAssertEqual(response.message?.payload.text, "hi")
    XCTAssertEqual(urls.values.map(\.absoluteString), ["http://memory/connect.test.v1.TestService/Echo"])
    let failed = await self.client(Editing(url: { _ in URL(string: "ftp://memory/x")! })).echo(
      request: .init()
    )
    XCTAssertEqual(failed.error?.code, .invalidArgument)
    XCTAssertTrue(failed.error?.message?.contains("ftp://memory/x") ?? false, "\(failed)")
  }

  func testReleasedProceedNamesTheInterceptor() async {
    final class Forgetful: UnaryInterceptor {
      func handleUnaryRawRequest(
        _ request: HTTPRequest<Data?>,
        proceed: @escaping @Sendable (Result<HTTPRequest<Data?>, ConnectError>) -> Void
      ) {}
    }
    let client = self.service.client(InterceptorFactory { _ in Forgetful() })
    let response = await client.echo(request: .init())
    XCTAssertEqual(response.error?.code, .internalError)
    XCTAssertTrue(response.error?.message?.contains("Forgetful") ?? false, "\(response)")
  }

  func testHookProceedsLaterFromAnotherThread() async {
    final class Late: UnaryInterceptor {
      func handleUnaryResponse<Message: ProtobufMessage>(
        _ response: ResponseMessage<Message>,
        proceed: @escaping @Sendable (ResponseMessage<Message>) -> Void
      ) {
        DispatchQueue.global().async {
          proceed(response)
          // Nothing comes of a second one.
          proceed(ResponseMessage(result: .failure(.canceled())))
        }
      }
    }
    let client = self.service.client(InterceptorFactory { _ in Late() })
    let response = await client.echo(request: .with { $0.payload.text = "late" })
    XCTAssertEqual(response.message?.payload.text, "late")
  }
}

/// Replaces parts of unary calls of `Echo`.
private final class Editing: UnaryInterceptor {
  typealias Edit = @Sendable (_ text: inout String, _ headers: inout [String: [String]]) -> Void

  private let request: Edit?
  private let response: (@Sendable (String) -> String)?
  private let rawRequest: (@Sendable (Data?) -> Data?)?
  private let rawResponse: (@Sendable (HTTPResponse) -> HTTPResponse)?
  private let url: (@Sendable (URL) -> URL)?

  init(
    request: Edit? = nil,
    response: (@Sendable (String) -> String)? = nil,
    rawRequest: (@Sendable (Data?) -> Data?)? = nil,
    rawResponse: (@Sendable (HTTPResponse) -> HTTPResponse)? = nil,
    url: (@Sendable (URL) -> URL)? = nil
  ) {
    self.request = request
    self.response = response
    self.rawRequest = rawRequest
    self.rawResponse = rawResponse
    self.url = url
  }

  @Sendable
  func handleUnaryRequest<Message: ProtobufMessage>(
    _ request: HTTPRequest<Message>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Message>, ConnectError>) -> Void
  ) {
    guard let edit = self.request else { return proceed(.success(request)) }
    var headers = request.headers
    var message = request.message
    if var echo = message as? Connect_Test_V1_EchoRequest {
      edit(&echo.payload.text, &headers)
      message = echo as? Message ?? message
    } else {
      var text = ""
      edit(&text, &headers)
    }
    proceed(
      .success(
        HTTPRequest(
          url: request.url,
          headers: headers,
          message: message,
          method: .post,
          trailers: request.trailers,
          idempotencyLevel: request.idempotencyLevel
        )
      )
    )
  }

  @Sendable
  func handleUnaryRawRequest(
    _ request: HTTPRequest<Data?>,
    proceed: @escaping @Sendable (Result<HTTPRequest<Data?>, ConnectError>) -> Void
  ) {
    guard self.rawRequest != nil || self.url != nil else { return proceed(.success(request)) }
    proceed(
      .success(
        HTTPRequest(
          url: self.url?(request.url) ?? request.url,
          headers: request.headers,
          message: self.rawRequest?(request.message) ?? request.message,
          method: request.method,
          trailers: request.trailers,
          idempotencyLevel: request.idempotencyLevel
        )
      )
    )
  }

  @Sendable
  func handleUnaryRawResponse(_ response: HTTPResponse, proceed: @escaping @Sendable (HTTPResponse) -> Void) {
    proceed(self.rawResponse?(response) ?? response)
  }

  @Sendable
  func handleUnaryResponse<Message: ProtobufMessage>(
    _ response: ResponseMessage<Message>,
    proceed: @escaping @Sendable (ResponseMessage<Message>) -> Void
  ) {
    guard let edit = self.response, var echo = response.message as? Connect_Test_V1_EchoResponse else {
      return proceed(response)
    }
    echo.payload.text = edit(echo.payload.text)
    guard let message = echo as? Message else { return proceed(response) }
    proceed(
      ResponseMessage(headers: response.headers, result: .success(message), trailers: response.trailers)
    )
  }
}
