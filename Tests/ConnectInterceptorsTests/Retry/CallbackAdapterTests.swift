import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Adapters and retriers with a completion.
final class CallbackAdapterTests: XCTestCase {
  private struct Broken: Error {}

  @TaskLocal private static var user = "nobody"

  /// When a completion is called.
  private enum Moment: CaseIterable {
    case atOnce, onAThread, inATask

    func run(_ body: @escaping @Sendable () -> Void) {
      switch self {
      case .atOnce: body()
      case .onAThread: Thread.detachNewThread(body)
      case .inATask: Task { body() }
      }
    }
  }

  private static func adding(_ value: String, _ moment: Moment = .atOnce) -> Adapter {
    Adapter { request, _, completion in
      moment.run {
        var request = request
        request.headers.add(name: "x-adapted", value: value)
        completion(.success(request))
      }
    }
  }

  /// A type that is both, as with Alamofire.
  private struct Both: CallbackRequestAdapter, CallbackRequestRetrier {
    let value: String
    var moment = Moment.atOnce

    func adapt(_ request: HTTPRequest<ByteBuffer?>, for method: MethodInfo, completion: Adapter.Completion) {
      self.moment.run {
        var request = request
        request.headers.add(name: "x-adapted", value: "\(self.value) \(method.name)")
        completion(.success(request))
      }
    }

    func retry(_ attempt: FailedAttempt, completion: Retrier.Completion) {
      self.moment.run { completion(attempt.number < 3 ? .retryWithDelay(.seconds(1)) : .doNotRetry) }
    }
  }

  // MARK: Answers

  func testTheyRunInOrderBeforeEachAttempt() async throws {
    for moment in Moment.allCases {
      let server = ScriptedServer(failing: .away)
      let client = server.client({ _ in
        RequestInterceptor(
          adapters: [
            Self.adding("a", moment), Adapter { request, _ in request }, Self.adding("b", moment),
          ],
          retriers: [
            Retrier { _, completion in moment.run { completion(.doNotRetry) } },
            Retrier { attempt, completion in
              moment.run { completion(attempt.error.code == .unavailable ? .retry : .doNotRetry) }
            },
          ]
        )
      })
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .ok)
      XCTAssertEqual(server.attempts.map { $0.headers["x-adapted"] }, [["a", "b"], ["a", "b"]])
    }
  }

  func testATypeThatIsBoth() async throws {
    for moment in Moment.allCases {
      for streams in [false, true] {
        let server = ScriptedServer(failing: .away, .away)
        let client = server.client({ _ in
          RequestInterceptor(interceptors: [Both(value: "a", moment: moment)])
        })
        let name: String
        if streams {
          let stream = try await server.stream(client)
          XCTAssertEqual(try stream.requireMessages().count, 1)
          name = "serverStream"
        } else {
          let response = try await server.call(client)
          XCTAssertEqual(response.code, .ok)
          name = "unary"
        }
        let expected = Array(repeating: ["a \(name)"], count: 3)
        XCTAssertEqual(server.attempts.map { $0.headers["x-adapted"] }, expected)
        XCTAssertEqual(server.executor.now, .seconds(2))
      }
    }
  }

  func testFailures() async throws {
    let server = ScriptedServer { _, _ in }
    let own = server.client({ _ in
      RequestInterceptor(adapters: [
        Adapter { _, _, completion in
          completion(.failure(ConnectError(code: .permissionDenied, message: "no key")))
        }
      ])
    })
    let response = try await server.call(own)
    XCTAssertEqual(response.error?.message, "no key")
    let stream = try await server.stream(own)
    XCTAssertEqual(stream.error?.message, "no key")
    let other = server.client({ _ in
      RequestInterceptor(adapters: [Adapter { _, _, completion in completion(.failure(Broken())) }])
    })
    let unknown = try await server.call(other)
    XCTAssertEqual(unknown.code, .unknown)
    XCTAssertTrue(unknown.error?.exception is Broken)
    XCTAssertEqual(server.attempts.count, 0)
  }

  func testARetrierThatFailsTheCall() async throws {
    let server = ScriptedServer(failing: .away)
    let client = server.client({ _ in
      RequestInterceptor(retriers: [
        Retrier { _, completion in
          Thread.detachNewThread { completion(.doNotRetryWithError(ConnectError(code: .dataLoss))) }
        },
        Retrier { _ in .retry },
      ])
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .dataLoss)
    XCTAssertEqual(server.attempts.count, 1)
  }

  /// As in the async form.
  func testTaskLocalValues() async throws {
    let server = ScriptedServer { number, _ in if number % 2 == 1 { throw ConnectError.away } }
    let seen = Observed<[String]>([])
    @Sendable func note() { seen.update { $0.append(Self.user) } }
    let callback = Adapter { request, _, completion in
      note()
      completion(.success(request))
    }
    let asynchronous = Adapter { request, _ in
      note()
      return request
    }
    var both: [[String]] = []
    for adapter in [callback, asynchronous] {
      seen.update { $0 = [] }
      let client = server.client({ _ in
        RequestInterceptor(adapters: [adapter], retriers: [Retrier { _, completion in completion(.retry) }])
      })
      _ = try await Self.$user.withValue("alice") { try await server.call(client) }
      both.append(seen.value)
    }
    XCTAssertEqual(both[0], both[1])
    XCTAssertEqual(both[0].count, 2)
    XCTAssertEqual(both[0].first, "alice")
  }

  // MARK: Mistakes

  /// The first answer counts, also where many threads answer at the same time.
  func testOnlyTheFirstAnswerCounts() async throws {
    let server = ScriptedServer { _, _ in }
    let client = server.client({ _ in
      RequestInterceptor(adapters: [
        Adapter { request, _, completion in
          var first = request
          first.headers["x-adapted"] = ["first"]
          completion(.success(first))
          completion(.failure(Broken()))
          completion(.success(request))
        }
      ])
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .ok)
    XCTAssertEqual(server.attempts.map { $0.headers["x-adapted"] }, [["first"]])

    let racing = server.client({ _ in
      RequestInterceptor(adapters: [
        Adapter { request, _, completion in
          for _ in 0..<8 { Thread.detachNewThread { completion(.success(request)) } }
        }
      ])
    })
    for _ in 0..<10 {
      let response = try await server.call(racing)
      XCTAssertEqual(response.code, .ok)
    }
    XCTAssertEqual(server.attempts.count, 11)
  }

  func testAnAdapterThatLetsGoOfItsCompletion() async throws {
    for moment in Moment.allCases {
      let server = ScriptedServer { _, _ in }
      let client = server.client({ _ in
        RequestInterceptor(
          adapters: [Adapter { _, _, completion in moment.run { withExtendedLifetime(completion) {} } }],
          retriers: [Retrier { _ in .retry }]
        )
      })
      let expected =
        "CallbackAdapter adapts a request of \(ScriptedServer.path)unary, and let go of its completion "
        + "without calling it"
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .internalError)
      XCTAssertEqual(response.error?.message, expected)
      let stream = try await server.stream(client)
      XCTAssertEqual(stream.code, .internalError)
      XCTAssertEqual(server.attempts.count, 0)
    }
  }

  func testARetrierThatLetsGoOfItsCompletion() async throws {
    for moment in Moment.allCases {
      let server = ScriptedServer { _, _ in throw ConnectError.away }
      let client = server.client({ _ in
        RequestInterceptor(retriers: [
          Retrier { _, completion in moment.run { withExtendedLifetime(completion) {} } },
          Retrier { _ in .retry },
        ])
      })
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .internalError)
      XCTAssertEqual(
        response.error?.message,
        "CallbackRetrier decides about a retry of \(ScriptedServer.path)unary, and let go of its completion "
          + "without calling it"
      )
      let stream = try await server.stream(client)
      XCTAssertEqual(stream.code, .internalError)
      XCTAssertEqual(server.attempts.count, 2)
    }
  }

  // MARK: Ends

  /// One that never answers ends with its call, and is told.
  func testCancellation() async throws {
    for cancels in [false, true] {
      for asksRetrier in [false, true] {
        let server = ScriptedServer { _, _ in throw ConnectError.away }
        let events = Observed<[String]>([])
        let held = Observed<[any Sendable]>([])
        let adapter = Adapter { request, _, completion in
          if asksRetrier { return completion(.success(request)) }
          completion.onCancel { events.update { $0.append("replaced") } }
          completion.onCancel { events.update { $0.append("told") } }
          held.update { $0.append(completion) }
        }
        let retrier = Retrier { _, completion in
          completion.onCancel { events.update { $0.append("told") } }
          held.update { $0.append(completion) }
        }
        let client = server.client(
          timeout: .seconds(1),
          { _ in RequestInterceptor(adapters: [adapter], retriers: [retrier]) }
        )
        let call = client.unary(ScriptedServer.method(), .text("x")) { response in
          events.update { $0.append("\(response.code)") }
        }
        try await server.executor.wait { held.value.count == 1 }
        if cancels { call.cancel() } else { server.executor.advance(by: .seconds(1)) }
        try await server.executor.wait { events.value.count == 2 }
        XCTAssertEqual(Set(events.value), [cancels ? "canceled" : "deadline_exceeded", "told"])
        // Too late: nothing happens; and who sets what to do now is told at once.
        if let completion = held.value.first as? Adapter.Completion {
          completion(.failure(Broken()))
          completion.onCancel { events.update { $0.append("late") } }
        } else if let completion = held.value.first as? Retrier.Completion {
          completion(.retry)
          completion.onCancel { events.update { $0.append("late") } }
        }
        held.update { $0 = [] }
        server.executor.runUntilIdle()
        XCTAssertEqual(events.value.count, 3)
        XCTAssertEqual(events.value.last, "late")
        XCTAssertEqual(server.attempts.count, asksRetrier ? 1 : 0)
      }
    }
  }

  /// Nothing is told of the end of a call that has had its answer.
  func testNoCancellationAfterAnAnswer() async throws {
    let server = ScriptedServer { _, _ in }
    let told = Observed(false)
    let client = server.client({ _ in
      RequestInterceptor(adapters: [
        Adapter { request, _, completion in
          completion.onCancel { told.update { $0 = true } }
          completion(.success(request))
          completion.onCancel { told.update { $0 = true } }
        }
      ])
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .ok)
    XCTAssertFalse(told.value)
  }

  /// What a closure holds is released with the call, also where it holds its own completion.
  func testNothingIsKept() async throws {
    final class Held: Sendable {}
    let server = ScriptedServer { _, _ in }
    weak var kept: Held?
    let isCalled = Observed(false)
    do {
      let held = Held()
      kept = held
      let client = server.client(
        timeout: .seconds(1),
        { _ in
          RequestInterceptor(adapters: [
            Adapter { [held] request, _, completion in
              completion.onCancel { withExtendedLifetime((held, completion)) {} }
              isCalled.update { $0 = true }
            }
          ])
        }
      )
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .deadlineExceeded)
    }
    XCTAssertTrue(isCalled.value)
    try await server.executor.wait { kept == nil }
  }

  func testManyCallsOverSockets() async throws {
    let both = Both(value: "a", moment: .onAThread)
    let dropping = Adapter { request, method, completion in
      // Each seventh is let go.
      guard request.headers["x-number"] != ["0"] else { return }
      Thread.detachNewThread { completion(.success(request)) }
    }
    try await SocketTest.run([{ _ in RequestInterceptor(adapters: [dropping], interceptors: [both]) }]) {
      server,
      client,
      setting in
      let codes = await withTaskGroup(of: Code.self) { group in
        for number in 0..<140 {
          group.addTask {
            let options = CallOptions(headers: ["x-number": ["\(number % 7)"]])
            return await client.unary(TestMethods.echo, .init(), options: options).code
          }
        }
        return await group.reduce(into: [Code: Int]()) { $0[$1, default: 0] += 1 }
      }
      XCTAssertEqual(codes, [.ok: 120, .internalError: 20], "\(setting)")
      XCTAssertEqual(server.requests.count, 120)
    }
  }
}
