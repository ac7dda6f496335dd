import Connect
import ConnectTesting
import Logging
import NIOCore
import XCTest

/// What is said of hooks that hold calls up: in the log, and in the error of a deadline.
final class HookWarningTests: XCTestCase {
  /// Writes warnings down, with the interceptor that they name.
  private struct WarningHandler: LogHandler {
    let events: Events
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .warning

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let name = event.metadata?["interceptor"].map { "\($0)" } ?? "?"
      let method = event.metadata?["rpc.method"].map { "\($0)" } ?? "?"
      self.events.add("\(event.message): \(name) \(method)")
    }
  }

  private func client(
    _ transport: ScriptedTransport,
    _ log: Events,
    _ interceptors: [InterceptorFactory],
    _ warnings: ProtocolClientConfig.HookWarnings,
    timeout: Duration? = nil
  ) -> ProtocolClient {
    ProtocolClient.scripted(transport, interceptors: interceptors, timeout: timeout) {
      $0.logger = Logger(label: "test") { _ in WarningHandler(events: log) }
      $0.hookWarnings = warnings
    }
  }

  // MARK: Holding

  func testWarnsOnceOfAHookThatHoldsTheRequest() async {
    let kept = Box<[@Sendable () -> Void]>([])
    let transport = ScriptedTransport.echo()
    let log = Events()
    let client = self.client(
      transport,
      log,
      [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.requestFunction = { request, proceed in
            kept.value = [{ proceed(.success(request)) }]
          }
        }
      ],
      .init(holding: .seconds(5))
    )
    let outcome = client.outcome(of: "x").outcome
    transport.virtualExecutor.runUntilIdle()
    transport.virtualExecutor.advance(by: .seconds(4))
    XCTAssertEqual(log.all, [])
    transport.virtualExecutor.advance(by: .seconds(60))
    XCTAssertEqual(log.all, ["an interceptor holds a call up: TestInterceptor /test.Text/Unary"])
    for goOn in kept.exchange([]) { goOn() }
    let response = await outcome.wait()
    XCTAssertEqual(response.message, "x")
  }

  func testNoWarningWithoutTheOptionOrOfHooksThatGoOn() async {
    for (warnings, seconds) in [(ProtocolClientConfig.HookWarnings(), 60), (.init(holding: .seconds(5)), 3)] {
      let transport = ScriptedTransport.echo()
      let log = Events()
      let client = self.client(
        transport,
        log,
        [
          TestInterceptor.make { interceptor in
            interceptor.unaryMessages.requestFunction = { request, proceed in
              _ = transport.executor.schedule(after: .seconds(seconds)) { proceed(.success(request)) }
            }
            interceptor.unaryBytes.responseFunction = { response, proceed in
              _ = transport.executor.schedule(after: .seconds(seconds)) { proceed(response) }
            }
          }
        ],
        warnings
      )
      let outcome = client.outcome(of: "x").outcome
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(600))
      let response = await outcome.wait()
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(log.all, [])
      XCTAssertEqual(transport.virtualExecutor.scheduled, [])
    }
  }

  func testWarnsOfStreamHooksAndAsyncInterceptors() async {
    let holding: [(InterceptorFactory, String)] = [
      (
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.requestMessageFunction = { message, proceed in
            Task {
              try? await Task.sleep(for: .seconds(3600))
              proceed(message)
            }
          }
        }, "TestInterceptor"
      ),
      (
        TestAsyncInterceptor.stream { request, next in
          try await Task.sleep(for: .seconds(3600))
          return try await next(request)
        }, "TestAsyncInterceptor"
      ),
    ]
    for (interceptor, name) in holding {
      let transport = ScriptedTransport.silent()
      let log = Events()
      let client = self.client(transport, log, [interceptor], .init(holding: .seconds(5)))
      let ended = Signal<Void>()
      let handle = client.bidirectionalStream(.bidirectional) { if case .complete = $0 { ended.fire() } }
      handle.send("a")
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(10))
      XCTAssertEqual(log.all, ["an interceptor holds a call up: \(name) /test.Text/Bidi"])
      handle.cancel()
      await ended.wait()
    }
  }

  // MARK: Blocking

  func testWarnsOfAHookThatBlocks() async {
    let transport = ScriptedTransport.echo()
    let block: @Sendable () -> Void = { transport.virtualExecutor.passUnnoticed(.milliseconds(200)) }
    let blocking: [InterceptorFactory] = [
      TestInterceptor.make { interceptor in
        interceptor.call.requestFunction = { _ in block() }
      },
      TestInterceptor.make { interceptor in
        interceptor.unaryMessages.requestFunction = { request, proceed in
          block()
          proceed(.success(request))
        }
      },
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes = UnaryFunction(updateResponse: { _ in
          block()
          return .proceed
        })
      },
    ]
    for interceptor in blocking {
      let log = Events()
      let client = self.client(transport, log, [interceptor], .init(blocking: .milliseconds(100)))
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
      XCTAssertEqual(
        log.all,
        ["a hook has blocked the executor, which all calls on it wait for: TestInterceptor /test.Text/Unary"]
      )
      let quiet = Events()
      let unmeasured = self.client(transport, quiet, [interceptor], .init(blocking: .milliseconds(500)))
      _ = await unmeasured.unary(.unary, "x")
      XCTAssertEqual(quiet.all, [])
    }
  }

  // MARK: Deadlines

  /// The deadline's error names the interceptor that held the call.
  func testADeadlineNamesTheInterceptorThatHoldsTheCall() async {
    let request = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.requestFunction = { request, proceed in
        Task {
          try? await Task.sleep(for: .seconds(3600))
          proceed(.success(request))
        }
      }
    }
    let response = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseFunction = { response, proceed in
        Task {
          try? await Task.sleep(for: .seconds(3600))
          proceed(response)
        }
      }
    }
    let async = TestAsyncInterceptor.unary { request, next in
      try? await Task.sleep(for: .seconds(3600))
      return try await next(request)
    }
    for (interceptor, suffix) in [
      (request, "; TestInterceptor has the request and has not passed it on"),
      (response, "; TestInterceptor has the response and has not passed it on"),
      (async, "; TestAsyncInterceptor has the request and has not passed it on"),
    ] {
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(transport, interceptors: [interceptor], timeout: .seconds(1))
      let outcome = client.outcome(of: "x").outcome
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(1))
      let error = await outcome.wait().error
      XCTAssertEqual(error?.code, .deadlineExceeded)
      XCTAssertEqual(error?.message, "/test.Text/Unary did not complete within 1.0 seconds\(suffix)")
    }
    let transport = ScriptedTransport.silent()
    let client = ProtocolClient.scripted(transport, timeout: .seconds(1))
    let outcome = client.outcome(of: "x").outcome
    transport.virtualExecutor.runUntilIdle()
    transport.virtualExecutor.advance(by: .seconds(1))
    let error = await outcome.wait().error
    XCTAssertEqual(error?.message, "/test.Text/Unary did not complete within 1.0 seconds")
  }
}
