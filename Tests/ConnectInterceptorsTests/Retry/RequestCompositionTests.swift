import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Adapters, retriers and interceptors, first to last.
final class RequestCompositionTests: XCTestCase {
  /// Adapts with its name, and answers a failed attempt with its answer.
  private struct Part: RequestAdapter, CallbackRequestRetrier {
    let name: String
    let asked: Observed<[String]>
    var answer: @Sendable (FailedAttempt) -> RetryResult = { _ in .doNotRetry }

    func adapt(
      _ request: HTTPRequest<ByteBuffer?>,
      for method: MethodInfo
    ) async throws -> HTTPRequest<ByteBuffer?> {
      var request = request
      request.headers.add(name: "x-adapted", value: self.name)
      return request
    }

    func retry(_ attempt: FailedAttempt, completion: Retrier.Completion) {
      self.asked.update { $0.append("\(self.name)\(attempt.number)") }
      completion(self.answer(attempt))
    }
  }

  /// Byte hooks that add a name to requests, and note what they see of responses.
  private struct Hooks: Interceptor {
    let name: String
    let seen: Observed<[String]>
    var retries = false

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        updateRequest: { request in request.headers.add(name: "x-adapted", value: self.name) },
        updateResponse: { response in
          self.seen.update { $0.append("\(self.name) \(response.code)") }
          return self.retries && response.error != nil ? .retry(after: .zero) : .proceed
        }
      )
    }

    func streamFunction() -> StreamFunction {
      StreamFunction(
        requestFunction: { request, proceed in
          var request = request
          request.headers.add(name: "x-adapted", value: self.name)
          proceed(.success(request))
        },
        streamResultFunction: { result, proceed in
          if case .complete(let code, _, _) = result {
            self.seen.update { $0.append("\(self.name) \(code)") }
          }
          proceed(result)
        }
      )
    }
  }

  private let asked = Observed<[String]>([])

  private func part(
    _ name: String,
    _ answer: @escaping @Sendable (FailedAttempt) -> RetryResult = { _ in .doNotRetry }
  ) -> Part {
    Part(name: name, asked: self.asked, answer: answer)
  }

  func testTheOrder() async throws {
    let server = ScriptedServer { _, _ in throw ConnectError.away }
    let (a, b) = (self.part("a"), self.part("b") { $0.number == 1 ? .retry : .doNotRetry })
    let (r, s) = (
      self.part("r"), self.part("s") { $0.number == 3 ? .doNotRetryWithError(.away) : .doNotRetry }
    )
    let last = self.part("l") { _ in .retryWithDelay(.seconds(5)) }
    let client = server.client({ _ in
      RequestInterceptor(adapters: [r], retriers: [r, s], interceptors: [a, b, last])
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .unavailable)
    XCTAssertEqual(
      server.attempts.map { $0.headers["x-adapted"] },
      Array(repeating: ["r", "a", "b", "l"], count: 3)
    )
    XCTAssertEqual(server.attempts.map(\.time), [.zero, .zero, .seconds(5)])
    XCTAssertEqual(
      self.asked.value,
      ["r1", "s1", "a1", "b1", "r2", "s2", "a2", "b2", "l2", "r3", "s3"]
    )
  }

  /// A composition is an adapter and a retrier, too.
  func testNested() async throws {
    let server = ScriptedServer(failing: .away)
    let inner = RequestComposition(
      adapters: [self.part("c")],
      retriers: [self.part("d")],
      interceptors: [self.part("e") { _ in .retry }]
    )
    let outer = RequestComposition(adapters: [self.part("f")], interceptors: [self.part("b"), inner])
    let (first, asking) = (self.part("a"), self.part("g"))
    let client = server.client({ _ in
      RequestInterceptor(adapters: [first], retriers: [asking], interceptors: [outer])
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(server.attempts.last?.headers["x-adapted"], ["a", "f", "b", "c", "e"])
    XCTAssertEqual(self.asked.value, ["g1", "b1", "d1", "e1"])
    let empty = try await server.call(server.client({ _ in RequestInterceptor() }))
    XCTAssertEqual(empty.code, .ok)
  }

  // MARK: With hooks

  private func client(
    _ server: ScriptedServer,
    _ retriers: [any RequestRetrier],
    _ hooks: [Hooks]
  ) -> ProtocolClient {
    let factories = hooks.map { hook -> InterceptorFactory in { _ in hook } }
    let config = ProtocolClientConfig(
      host: "http://scripted.test",
      interceptors: .composed(
        adapters: [self.part("a"), self.part("b")],
        retriers: retriers,
        interceptors: factories
      ),
      retries: .init(maximumRetries: 10)
    )
    return ProtocolClient(httpClient: server.transport, config: config)
  }

  /// The retriers are asked first, and interceptors see what they let pass.
  func testHooks() async throws {
    for streams in [false, true] {
      let server = ScriptedServer(failing: .away, .away)
      let seen = Observed<[String]>([])
      let requests = Observed<[[String]]>([])
      self.asked.update { $0 = [] }
      let retrier = self.part("r") { attempt in
        requests.update { $0.append(attempt.request.headers["x-adapted"]) }
        return .retry
      }
      let client = self.client(
        server,
        [retrier],
        [Hooks(name: "h", seen: seen), Hooks(name: "i", seen: seen)]
      )
      if streams {
        let stream = try await server.stream(client)
        XCTAssertEqual(try stream.requireMessages().count, 1)
      } else {
        let response = try await server.call(client)
        XCTAssertEqual(response.code, .ok)
      }
      let adapted = ["a", "b", "h", "i"]
      XCTAssertEqual(server.attempts.map { $0.headers["x-adapted"] }, Array(repeating: adapted, count: 3))
      XCTAssertEqual(requests.value, [adapted, adapted])
      XCTAssertEqual(self.asked.value, ["r1", "r2"])
      XCTAssertEqual(seen.value, ["i ok", "h ok"])
    }
  }

  func testHooksAfterRetriersWithoutAnOpinion() async throws {
    let server = ScriptedServer(failing: .away)
    let seen = Observed<[String]>([])
    let client = self.client(
      server,
      [self.part("r"), self.part("s")],
      [Hooks(name: "h", seen: seen), Hooks(name: "i", seen: seen, retries: true)]
    )
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(self.asked.value, ["r1", "s1"])
    XCTAssertEqual(seen.value, ["i unavailable", "i ok", "h ok"])
    XCTAssertEqual(server.attempts.count, 2)
  }

  func testHooksSeeTheErrorThatARetrierDecidesOn() async throws {
    let server = ScriptedServer(failing: .away)
    let seen = Observed<[String]>([])
    let client = self.client(
      server,
      [self.part("r") { _ in .doNotRetryWithError(ConnectError(code: .dataLoss)) }],
      [Hooks(name: "h", seen: seen)]
    )
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .dataLoss)
    XCTAssertEqual(seen.value, ["h data_loss"])
  }

  func testPartsThatAreMissing() {
    let config = ProtocolClientConfig(host: "http://scripted.test")
    let hook: InterceptorFactory = { _ in NoInterceptor() }
    func names(_ factories: [InterceptorFactory]) -> [String] { factories.map { "\(type(of: $0(config)))" } }
    XCTAssertEqual(names(.composed(interceptors: [])), [])
    XCTAssertEqual(names(.composed(interceptors: [hook])), ["NoInterceptor"])
    XCTAssertEqual(
      names(.composed(adapters: [self.part("a")], interceptors: [hook])),
      ["RequestInterceptor", "NoInterceptor"]
    )
    XCTAssertEqual(
      names(.composed(retriers: [self.part("r")], interceptors: [hook])),
      ["NoInterceptor", "RequestInterceptor"]
    )
  }
}
