import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Chains of many hooks, and many retries at once, take no stack that grows with their number.
final class DeepChainTests: XCTestCase {
  private static let hookCount = 10_000
  private static let retryCount = 100_000

  /// Proceeds at once, in all hooks.
  private static let passing = TestInterceptor.make { interceptor in
    interceptor.unaryMessages = UnaryMessageFunction(
      requestFunction: { $1(.success($0)) },
      responseFunction: { $1($0) }
    )
    interceptor.unaryBytes = UnaryFunction(
      requestFunction: { $1(.success($0)) },
      responseFunction: { $1($0) }
    )
    interceptor.streamMessages = StreamMessageFunction(
      requestFunction: { $1(.success($0)) },
      requestMessageFunction: { $1($0) },
      streamResultFunction: { $1($0) }
    )
    interceptor.streamBytes = StreamFunction(
      requestFunction: { $1(.success($0)) },
      requestMessageFunction: { $1($0) },
      streamResultFunction: { $1($0) }
    )
  }

  func testAUnaryChainOfManyHooks() async {
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: Array(repeating: Self.passing, count: Self.hookCount)
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
  }

  func testAStreamOfManyHooks() async {
    let client = ProtocolClient.scripted(
      ScriptedTransport { stream in
        stream.onFinish = { stream in
          stream.respondStream()
          for message in stream.sentMessages { stream.sendMessage(message) }
          stream.endStream()
        }
      },
      interceptors: Array(repeating: Self.passing, count: Self.hookCount)
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
  }

  /// The attempts are answered at once by the hook of one level, and retried at once by that of another or the same.
  func testManyRetriesAtOnce() async {
    let count = Box(0)
    let answering = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.requestFunction = { _, proceed in
        guard count.increment() > Self.retryCount else {
          return proceed.answer(HTTPResponse(error: ConnectError(code: .unavailable)))
        }
        proceed.answer(HTTPResponse(code: .ok, message: ByteBuffer(string: "\"done\"")))
      }
    }
    let retryingMessages = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.responseFunction = { response, proceed in
        if response.code == .unavailable { proceed.retry() } else { proceed(response) }
      }
    }
    let retryingBytes = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseFunction = { response, proceed in
        if response.code == .unavailable { proceed.retry() } else { proceed(response) }
      }
    }
    let updating = TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(updateResponse: { response in
        response.code == .unavailable ? .retry(after: .zero) : .proceed
      })
    }
    for retrying in [retryingMessages, retryingBytes, updating] {
      count.value = 0
      let client = ProtocolClient.scripted(.silent(), interceptors: [retrying, answering]) {
        $0.retries.maximumRetries = Self.retryCount
      }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "done")
      XCTAssertEqual(count.value, Self.retryCount + 1)
    }
  }

  func testManyRetriesOfAStreamAtOnce() async {
    let count = Box(0)
    let client = ProtocolClient.scripted(
      .silent(),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.streamResultFunction = { result, proceed in
            if case .complete(.unavailable, _, _) = result { proceed.retry() } else { proceed(result) }
          }
        },
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.requestFunction = { _, proceed in
            guard count.increment() > Self.retryCount else {
              return proceed(.failure(ConnectError(code: .unavailable)))
            }
            proceed.answer(StreamAnswer(messages: ["done"]))
          }
        },
      ]
    ) { $0.retries.maximumRetries = Self.retryCount }
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "done", "end ok"])
    XCTAssertEqual(count.value, Self.retryCount + 1)
  }

  func testAnAsyncInterceptorThatRetriesManyTimes() async {
    let count = Box(0)
    let client = ProtocolClient.scripted(
      .silent(),
      interceptors: [
        TestAsyncInterceptor.unary { request, next in
          var response = try await next(request)
          while response.code == .unavailable { response = try await next(request) }
          return response
        },
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.requestFunction = { _, proceed in
            guard count.increment() > Self.retryCount / 10 else {
              return proceed(.failure(ConnectError(code: .unavailable)))
            }
            proceed.answer(ResponseMessage(message: "done"))
          }
        },
      ]
    ) { $0.retries.maximumRetries = Self.retryCount }
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "done")
  }
}
