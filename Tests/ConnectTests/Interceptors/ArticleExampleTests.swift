import Connect
import ConnectTesting
import SwiftProtobuf
import XCTest

/// Copies of examples in the articles "Interceptors" and "Errors and retries", some with other names, in calls.
///
/// The code of the articles itself is compiled in `DocumentationTests`. A change of an example is made here, too.
final class ArticleExampleTests: XCTestCase {
  func testTokenInterceptor() async throws {
    let transport = ScriptedTransport { stream in
      guard stream.request.headers["authorization"] == ["Bearer token for scripted.test"] else {
        stream.reply(.unauthenticated, status: 401)
        return
      }
      stream.reply(stream.sentMessage)
    }
    let client = ProtocolClient.scripted(transport, interceptors: [{ TokenInterceptor(config: $0) }])

    let response = await client.unary(.unary, "hello")

    XCTAssertEqual(try response.get(), "hello")
  }

  func testTokenInterceptorRetriesWhatTheServerRefused() async throws {
    let transport = ScriptedTransport { stream in stream.reply(.unauthenticated, status: 401) }
    let client = ProtocolClient.scripted(transport, interceptors: [{ TokenInterceptor(config: $0) }])
    let executor = transport.virtualExecutor

    async let response = client.unary(.unary, "hello")
    for attempt in 1...4 {
      try await transport.waitForStreams(attempt)
      executor.advance(by: .milliseconds(100))
    }

    let code = await response.code
    XCTAssertEqual(code, .unauthenticated)
    XCTAssertEqual(transport.streams.count, 4, "the first attempt and three retries")
  }

  func testTokenInterceptorDoesNotRepeatWhatMayHaveBeenProcessed() async throws {
    for code in [Code.unavailable, .aborted, .unknown] {
      let transport = ScriptedTransport { stream in stream.reply(code, status: 503) }
      let client = ProtocolClient.scripted(transport, interceptors: [{ TokenInterceptor(config: $0) }])
      let response = await client.unary(.unary, "hello")
      XCTAssertEqual(response.code, code)
      XCTAssertEqual(transport.streams.count, 1, "\(code)")
    }
  }

  func testTenantInterceptor() async throws {
    let transport = ScriptedTransport.replying([{ $0.reply(.aborted) }, { $0.reply("\"done\"") }])
    let client = ProtocolClient.scripted(transport, interceptors: [{ _ in TenantInterceptor() }])
    let refused = await client.unary(.unary, "hello")
    XCTAssertEqual(refused.code, .unauthenticated)
    XCTAssertTrue(transport.streams.isEmpty)

    var options = CallOptions()
    options.context[Tenant.self] = "acme"
    let ended = Events()
    client.unary(.read, "hello", options: options) { ended.add($0.message?.text ?? "\($0.code)") }
    transport.virtualExecutor.runUntilIdle()
    transport.virtualExecutor.advance(by: .milliseconds(50))

    XCTAssertEqual(ended.all, ["done"])
    XCTAssertEqual(transport.streams.map { $0.request.headers["x-tenant"] }, [["acme"], ["acme"]])
    XCTAssertEqual(transport.streams.map { $0.request.headers["x-get"] }, [["false"], ["false"]])
  }

  func testTenantInterceptorDoesNotRepeatAMethodWithSideEffects() async throws {
    let transport = ScriptedTransport { stream in stream.reply(.aborted) }
    let client = ProtocolClient.scripted(transport, interceptors: [{ _ in TenantInterceptor() }])
    var options = CallOptions()
    options.context[Tenant.self] = "acme"
    let response = await client.unary(.unary, "hello", options: options)
    XCTAssertEqual(response.code, .aborted)
    XCTAssertEqual(transport.streams.count, 1)
  }

  func testRecoveringInterceptor() async {
    for (level, expected) in [
      (IdempotencyLevel.noSideEffects, ["headers", "done", "end ok"]),
      (.unknown, ["headers", "end unavailable"]),
    ] {
      let transport = ScriptedTransport.replying([
        { stream in
          stream.respondStream()
          stream.endStream(.unavailable)
        },
        { stream in
          stream.respondStream()
          stream.sendMessage("\"done\"")
          stream.endStream()
        },
      ])
      let client = ProtocolClient.scripted(transport, interceptors: [{ _ in RecoveringInterceptor() }])
      let watch = TextMethod(
        codablePath: "/test.Text/Watch",
        streamType: .serverStream,
        idempotencyLevel: level
      )
      var results: [String] = []
      for await result in client.serverStream(watch, "x").results { results.append(result.short) }
      XCTAssertEqual(results, expected)
    }
  }

  func testStopwatch() async throws {
    let transport = ScriptedTransport { stream in stream.reply(stream.sentMessage) }
    let client = ProtocolClient.scripted(transport, interceptors: [{ _ in Stopwatch() }])

    let response = await client.unary(.unary, "hello", options: CallOptions(timeout: .seconds(2)))

    XCTAssertEqual(try response.get(), "hello")
  }

  func testHedging() async throws {
    let transport = ScriptedTransport { stream in
      guard !stream.request.headers["grpc-previous-rpc-attempts"].isEmpty else { return }
      stream.reply(stream.sentMessage)
    }
    let client = ProtocolClient.scripted(transport) { config in
      config.hedging = { method in
        method.name == "Read" ? HedgingPolicy(maximumAttempts: 3, delay: .milliseconds(20)) : nil
      }
    }

    async let response = client.unary(.read, "hello")
    try await transport.waitForStreams(1)
    transport.virtualExecutor.advance(by: .milliseconds(20))

    let message = try await response.get()
    XCTAssertEqual(message, "hello")
    XCTAssertEqual(transport.streams.map(\.isCancelled), [true, false])
  }

  func testDetails() throws {
    let error = ConnectError(
      code: .unavailable,
      details: [try ConnectError.Detail(Google_Protobuf_Duration.with { $0.seconds = 3 })]
    )
    XCTAssertEqual(error.unpackedDetails(Google_Protobuf_Duration.self).map(\.seconds), [3])
  }
}

extension ScriptedTransport {
  /// Waits until so many streams have started and have been answered.
  fileprivate func waitForStreams(_ count: Int) async throws {
    try await self.virtualExecutor.wait { self.streams.count >= count }
  }
}

private enum Tenant: CallContextKey {
  static let defaultValue: String? = nil
}

private final class TenantInterceptor: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(
      requestFunction: { request in
        guard let tenant = request.context[Tenant.self] else { throw ConnectError(code: .unauthenticated) }
        request.headers["x-tenant"] = [tenant]
      },
      outcomeFunction: { outcome in
        if let error = outcome.error { print("\(method.path): \(error), attempts: \(outcome.attempts)") }
      }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(updateResponse: { response in
      // Only a method that says so may be processed twice.
      guard response.code == .aborted, method.idempotencyLevel != .unknown else { return .proceed }
      return .retry(after: .milliseconds(50))
    })
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(updateRequest: { request in request.headers["x-get"] = ["\(request.isGET)"] })
  }
}

private final class TokenInterceptor: Interceptor {
  init(config: ProtocolClientConfig) {}

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in
        fetchToken(for: request.url.host) { token in
          var request = request
          request.headers["Authorization"] = ["Bearer \(token)"]
          proceed(.success(request))
        }
      },
      responseFunction: { response, proceed in
        // The server refused the call and did not process it: a retry is safe, whatever the method does.
        if response.code == .unauthenticated {
          proceed.retry(after: .milliseconds(100))
        } else {
          proceed(response)
        }
      }
    )
  }
}

private func fetchToken(for host: String, _ completion: @escaping @Sendable (String) -> Void) {
  Task.detached { completion("token for \(host)") }
}

private struct RecoveringInterceptor: AsyncStreamInterceptor {
  func interceptStream<Input, Output>(
    _ request: StreamRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: StreamNext<Input, Output>
  ) async throws -> StreamResponse<Output> {
    try await next(request).recoverErrors { error in
      // Headers are held back until here, so a stream that has shown no message can be retried.
      error.code == .unavailable && method.idempotencyLevel != .unknown ? try await next(request) : nil
    }
  }
}

private struct Stopwatch: AsyncUnaryInterceptor {
  func interceptUnary<Input, Output>(
    _ request: HTTPRequest<Input>,
    method: MethodSpec<Input, Output>,
    next: UnaryNext<Input, Output>
  ) async throws -> ResponseMessage<Output> {
    let start = ContinuousClock.now
    let response = try await next(request)
    XCTAssertGreaterThan(ContinuousClock.now - start, .zero, "\(method.path) \(response.code)")
    return response
  }
}
