import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Hooks that wait for something in a task of their own, with the interceptor's state.
final class ProceedTaskTests: XCTestCase {
  /// Keeps state in itself, without a lock, and is not `Sendable`.
  private final class StatefulInterceptor: Interceptor {
    private var tokens: [String] = []
    private let fetch: @Sendable () async -> String?

    init(fetch: @escaping @Sendable () async -> String?) {
      self.fetch = fetch
    }

    func unaryFunction() -> UnaryFunction {
      UnaryFunction(
        requestFunction: { request, proceed in
          proceed.task {
            guard let token = await self.fetch() else { return }
            self.tokens.append(token)
            var request = request
            request.headers["x-tokens"] = self.tokens
            proceed(.success(request))
          }
        },
        responseFunction: { response, proceed in
          if response.code == .unavailable { proceed.retry() } else { proceed(response) }
        }
      )
    }
  }

  func testATaskUsesTheInterceptorsStateOnTheCallsExecutor() async {
    let count = Box(0)
    let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"ok\"") }])
    let isOnExecutor = Box<[Bool]>([])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        { _ in
          StatefulInterceptor {
            await Task.yield()
            isOnExecutor.value = isOnExecutor.value + [transport.executor.isCurrent]
            return "token\(count.increment())"
          }
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "ok")
    XCTAssertEqual(
      transport.streams.map { $0.request.headers["x-tokens"] },
      [["token1"], ["token1", "token2"]]
    )
    XCTAssertEqual(isOnExecutor.value, [true, true])
  }

  func testATaskThatDoesNotProceedEndsTheCall() async {
    let client = ProtocolClient.scripted(.echo(), interceptors: [{ _ in StatefulInterceptor { nil } }])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.error?.code, .internalError)
    XCTAssertEqual(
      response.error?.message,
      "StatefulInterceptor has the request of /test.Text/Unary, and let go of proceed without calling it"
    )
  }

  /// Also a hook that is told of its call's end, and one that another hook wraps, run their tasks on the call's executor.
  func testTasksOfHooksThatAreToldOfTheEndOrWrapped() async {
    let transport = ScriptedTransport.silent()
    let places = Box<[String]>([])
    let note: @Sendable (String) -> Void = {
      places.value = places.value + ["\($0) \(transport.executor.isCurrent)"]
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          let wrapped: (HTTPRequest<ByteBuffer>, UnaryFunction.RequestProceed) -> Void = { request, proceed in
            proceed.task {
              await Task.yield()
              note("wrapped")
              proceed(.success(request))
            }
          }
          interceptor.unaryBytes.requestFunction = { request, proceed in
            wrapped(request, Proceed(around: proceed) { proceed.send($0) })
          }
          interceptor.unaryBytes.responseFunction = { response, proceed in
            proceed.task {
              await Task.yield()
              note("end \(proceed.isOver)")
              proceed(response)
            }
          }
        }
      ],
      timeout: .seconds(1)
    )
    let outcome = client.outcome(of: "x").outcome
    while transport.streams.isEmpty { await Task.yield() }
    transport.virtualExecutor.advance(by: .seconds(1))
    let response = await outcome.wait()
    XCTAssertEqual(response.code, .deadlineExceeded)
    while places.value.count < 2 { await Task.yield() }
    XCTAssertEqual(places.value, ["wrapped true", "end true true"])
  }

  func testDriversRunTasksInVirtualTime() async throws {
    let executor = VirtualExecutor()
    let driver = InterceptorDriver(executor: executor) { _ in
      StatefulInterceptor {
        try? await executor.clock.sleep(for: .seconds(30))
        return "late"
      }
    }
    let outcome = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
    XCTAssertEqual(outcome.request?.headers["x-tokens"], ["late"])
    XCTAssertEqual(executor.now, .seconds(30))
  }
}
