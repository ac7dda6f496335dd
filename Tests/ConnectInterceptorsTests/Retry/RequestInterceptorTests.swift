import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

/// Adapters and retriers.
final class RequestInterceptorTests: XCTestCase {
  private struct Broken: Error {}

  private static func adding(_ value: String, waiting clock: VirtualClock? = nil) -> Adapter {
    Adapter { request, _ in
      try await clock?.sleep(for: .seconds(1))
      var request = request
      request.headers.add(name: "x-adapted", value: value)
      return request
    }
  }

  // MARK: Adapters

  func testAdaptersRunInOrderBeforeEachAttempt() async throws {
    for isAsync in [false, true] {
      let server = ScriptedServer(failing: .away)
      let clock = isAsync ? server.executor.clock : nil
      let client = server.client({ _ in
        RequestInterceptor(
          adapters: [Self.adding("a", waiting: clock), Self.adding("b", waiting: clock)],
          retriers: [Retrier { _ in .retry }]
        )
      })
      let response = try await server.call(client)
      XCTAssertEqual(response.code, .ok)
      XCTAssertEqual(server.attempts.map { $0.headers["x-adapted"] }, [["a", "b"], ["a", "b"]])
      XCTAssertEqual(server.executor.now, isAsync ? .seconds(4) : .zero)
    }
  }

  func testTheFirstFailureStops() async throws {
    let server = ScriptedServer { _, _ in }
    let ran = Observed(0)
    let client = server.client({ _ in
      RequestInterceptor(
        adapters: [
          Adapter { _, _ in throw ConnectError(code: .permissionDenied, message: "no key") },
          Adapter { request, _ in
            ran.update { $0 += 1 }
            return request
          },
        ],
        retriers: [
          Retrier { _ in
            ran.update { $0 += 1 }
            return .retry
          }
        ]
      )
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.error?.message, "no key")
    let stream = try await server.stream(client)
    XCTAssertEqual(stream.error?.message, "no key")
    XCTAssertEqual(ran.value, 0)
    XCTAssertEqual(server.attempts.count, 0)
  }

  func testAnyErrorOfAnAdapterIsTheCause() async throws {
    let server = ScriptedServer { _, _ in }
    let client = server.client({ _ in RequestInterceptor(adapters: [Adapter { _, _ in throw Broken() }]) })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .unknown)
    XCTAssertTrue(response.error?.exception is Broken)
  }

  func testAnAdapterSeesAndChangesTheMessageOfAUnaryCall() async throws {
    let server = ScriptedServer { _, _ in }
    let seen = Observed<[(Int?, String)]>([])
    let client = server.client({ _ in
      RequestInterceptor(adapters: [
        Adapter { request, method in
          seen.update { $0.append((request.message?.readableBytes, "\(method.name)")) }
          var request = request
          let bytes: [UInt8] = try ScriptedServer.Request.text("changed").serializedBytes()
          request.message = ByteBuffer(bytes: bytes)
          return request
        }
      ])
    })
    let response = try await server.call(client, "abc")
    XCTAssertEqual(response.message?.payload.text, "changed")
    let stream = try await server.stream(client, "abc")
    XCTAssertEqual(stream.messages.first?.payload.text, "abc")
    XCTAssertEqual(seen.value.map(\.0), [7, nil])
    XCTAssertEqual(seen.value.map(\.1), ["unary", "serverStream"])
  }

  func testAnAdapterIsCancelledWithItsCall() async throws {
    for cancels in [false, true] {
      let server = ScriptedServer { _, _ in }
      let outcome = Observed<[String]>([])
      let adapter = Adapter { request, _ in
        do {
          try await server.executor.clock.sleep(for: .seconds(60))
        } catch {
          outcome.update { $0.append("adapter \(error is CancellationError)") }
        }
        return request
      }
      let client = server.client(timeout: .seconds(1), { _ in RequestInterceptor(adapters: [adapter]) })
      let call = client.unary(ScriptedServer.method(), .text("x")) { response in
        outcome.update { $0.append("call \(response.code)") }
      }
      server.executor.runUntilIdle()
      if cancels { call.cancel() } else { server.executor.advance(by: .seconds(1)) }
      try await server.executor.wait { outcome.value.count == 2 }
      XCTAssertEqual(
        Set(outcome.value),
        ["call \(cancels ? "canceled" : "deadline_exceeded")", "adapter true"]
      )
      XCTAssertEqual(server.attempts.count, 0)
    }
  }

  /// Also where the attempt before has failed, and was given up, all at once.
  func testTheAdapterOfALaterAttemptIsCancelledWithItsCall() async throws {
    let server = ScriptedServer { _, _ in }
    let attempts = Observed(0)
    let isCancelled = Observed(false)
    let slow = Adapter { request, _ in
      guard
        attempts.update({
          $0 += 1; return $0
        }) > 1
      else { return request }
      do {
        try await server.executor.clock.sleep(for: .seconds(60))
      } catch {
        isCancelled.update { $0 = true }
      }
      return request
    }
    let client = server.client(
      { _ in RequestInterceptor(adapters: [slow], retriers: [Retrier { _ in .retry }]) },
      { _ in RequestInterceptor(adapters: [Adapter { _, _ in throw Broken() }]) }
    )
    let call = client.unary(ScriptedServer.method(), .text("x")) { _ in }
    server.executor.runUntilIdle()
    XCTAssertEqual(attempts.value, 2)
    call.cancel()
    try await server.executor.wait { isCancelled.value }
  }

  // MARK: Retriers

  func testTheFirstAnswerDecides() async throws {
    let server = ScriptedServer { number, _ in
      throw ConnectError(code: .aborted, message: "attempt \(number)")
    }
    let asked = Observed<[String]>([])
    @Sendable func retrier(_ name: String, _ answer: @escaping @Sendable (FailedAttempt) -> RetryResult)
      -> Retrier
    {
      Retrier { attempt in
        asked.update { $0.append("\(name)\(attempt.number)") }
        return answer(attempt)
      }
    }
    let client = server.client({ _ in
      RequestInterceptor(retriers: [
        retrier("a") { _ in .doNotRetry },
        retrier("b") { $0.number == 1 ? .retryWithDelay(.seconds(3)) : .doNotRetry },
        retrier("c") { $0.number == 2 ? .retry : .doNotRetryWithError(ConnectError(code: .dataLoss)) },
        retrier("d") { _ in .retry },
      ])
    })
    let response = try await server.call(client)
    XCTAssertEqual(response.code, .dataLoss)
    XCTAssertEqual(asked.value, ["a1", "b1", "a2", "b2", "c2", "a3", "b3", "c3"])
    XCTAssertEqual(server.attempts.map(\.time), [.zero, .seconds(3), .seconds(3)])
  }

  /// There is nothing to decide any more.
  func testNobodyIsAskedWhenTheCallItselfEnds() async throws {
    let server = ScriptedServer { _, context in await context.waitUntilClosed() }
    let asked = Observed<[Code]>([])
    let retrier = Retrier { attempt in
      asked.update { $0.append(attempt.error.code) }
      return .doNotRetry
    }
    let client = server.client({ _ in RequestInterceptor(retriers: [retrier]) })
    let options = CallOptions(timeout: .seconds(1))
    let unary = try await server.call(client, options: options)
    XCTAssertEqual(unary.code, .deadlineExceeded)
    let stream = try await server.stream(client, options: options)
    XCTAssertEqual(stream.code, .deadlineExceeded)
    let call = client.unary(ScriptedServer.method(), .text("x")) { _ in }
    server.executor.runUntilIdle()
    call.cancel()
    server.executor.runUntilIdle()
    XCTAssertEqual(asked.value, [])
  }

  func testNobodyWantsARetry() async throws {
    let server = ScriptedServer(failing: ConnectError(code: .aborted, message: "conflict"))
    let client = server.client({ _ in RequestInterceptor(retriers: [Retrier { _ in .doNotRetry }]) })
    let response = try await server.call(client)
    XCTAssertEqual(response.error?.message, "conflict")
  }

  func testARetrierSeesTheAdaptedRequestAndTheMethod() async throws {
    let server = ScriptedServer(failing: .away)
    let seen = Observed<[FailedAttempt]>([])
    let client = server.client({ _ in
      RequestInterceptor(
        adapters: [Self.adding("a")],
        retriers: [
          Retrier { attempt in
            seen.update { $0.append(attempt) }
            return .retry
          }
        ]
      )
    })
    _ = try await server.call(client)
    let attempt = try XCTUnwrap(seen.value.first)
    XCTAssertEqual(seen.value.count, 1)
    XCTAssertEqual(attempt.error.code, .unavailable)
    XCTAssertEqual(attempt.request.headers["x-adapted"], ["a"])
    XCTAssertEqual(attempt.method, ScriptedServer.method().info)
  }

  func testStreams() async throws {
    for networkProtocol in [NetworkProtocol.connect, .grpc] {
      for isAsync in [false, true] {
        let server = ScriptedServer(failing: .away, .away)
        let client = server.client(
          over: networkProtocol,
          { _ in
            RequestInterceptor(
              adapters: [Self.adding("a")],
              retriers: [
                Retrier { attempt in
                  if isAsync { await Task.yield() }
                  return attempt.number == 1 ? .retry : .retryWithDelay(.seconds(1))
                }
              ]
            )
          }
        )
        let stream = try await server.stream(client)
        XCTAssertEqual(try stream.requireMessages().count, 1)
        XCTAssertEqual(server.attempts.map { $0.headers["x-adapted"] }, [["a"], ["a"], ["a"]])
        XCTAssertEqual(server.executor.now, .seconds(1))
      }
    }
  }

  func testAStreamThatIsNotRetried() async throws {
    for answer in [RetryResult.doNotRetry, .doNotRetryWithError(ConnectError(code: .dataLoss)), .retry] {
      let server = ScriptedServer(failing: .away, sendsHeadersFirst: true)
      // No retries are left.
      let client = server.client(retries: 0, { _ in RequestInterceptor(retriers: [Retrier { _ in answer }]) })
      let stream = try await server.stream(client)
      if case .doNotRetryWithError = answer {
        XCTAssertEqual(stream.code, .dataLoss)
      } else {
        XCTAssertEqual(stream.code, .unavailable)
      }
      XCTAssertFalse(stream.headers.isEmpty)
    }
  }

  func testAStreamThatHasDeliveredAMessageAsksNobody() async throws {
    let server = ScriptedServer(messagesBeforeFailure: 1) { _, _ in throw ConnectError.away }
    let asked = Observed(0)
    let client = server.client({ _ in
      RequestInterceptor(retriers: [
        Retrier { _ in
          asked.update { $0 += 1 }
          return .retry
        }
      ])
    })
    let stream = try await server.stream(client)
    XCTAssertEqual(stream.code, .unavailable)
    XCTAssertEqual(asked.value, 0)
  }

  /// For a client, a method and a call, each inside of the one before.
  func testLevels() async throws {
    let server = ScriptedServer { _, _ in }
    var config = ProtocolClientConfig(
      host: "http://scripted.test",
      interceptors: [{ _ in RequestInterceptor(adapters: [Self.adding("client")]) }]
    )
    config.methodInterceptors = { method in
      method.streamType == .unary
        ? [{ _ in RequestInterceptor(adapters: [Self.adding("method")]) }] : []
    }
    let client = ProtocolClient(httpClient: server.transport, config: config)
    let options = CallOptions(interceptors: [{ _ in RequestInterceptor(adapters: [Self.adding("call")]) }])
    _ = try await server.call(client, options: options)
    _ = try await server.stream(client)
    XCTAssertEqual(
      server.attempts.map { $0.headers["x-adapted"] },
      [["client", "method", "call"], ["client"]]
    )
  }

  func testWithADriver() async throws {
    let driver = InterceptorDriver { _ in
      RequestInterceptor(
        adapters: [Self.adding("a")],
        retriers: [Retrier { _ in .retryWithDelay(.seconds(2)) }]
      )
    }
    let request = driver.makeRequest(message: ByteBuffer(string: "x"))
    let sent = try await driver.unary.request(request).outcome.request
    XCTAssertEqual(sent?.headers["x-adapted"], ["a"])
    let verb = try await driver.unary.response(HTTPResponse(error: .away)).outcome
    XCTAssertEqual(verb.retryDelay, .seconds(2))
  }
}
