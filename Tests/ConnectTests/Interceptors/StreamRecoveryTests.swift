import Connect
import ConnectTesting
import XCTest

/// Errors of streams that async interceptors map, recover, suppress and retry.
final class StreamRecoveryTests: XCTestCase {
  private static func serving(_ messages: [String], _ end: Code?) -> ScriptedTransport.Script {
    { stream in
      stream.onFinish = { stream in
        stream.respondStream(headers: ["x-attempt": ["\(messages.count)"]])
        for message in messages { stream.sendMessage("\"\(message)\"") }
        stream.endStream(end)
      }
    }
  }

  private func results(_ scripts: [ScriptedTransport.Script], _ interceptor: @escaping InterceptorFactory)
    async -> [String]
  {
    await ProtocolClient.scripted(.replying(scripts), interceptors: [interceptor]).results()
  }

  func testMapErrorsSuppressesReplacesAndThrows() async {
    let failing = [Self.serving(["1"], .unavailable)]
    let suppressed = await self.results(
      failing,
      TestAsyncInterceptor.stream { try await $1($0).mapErrors { _ in nil } }
    )
    XCTAssertEqual(suppressed, ["headers", "1", "end ok"])
    let thrown = await self.results(
      failing,
      TestAsyncInterceptor.stream { try await $1($0).mapErrors { _ in throw ConnectError(code: .aborted) } }
    )
    XCTAssertEqual(thrown, ["headers", "1", "end aborted"])
    let replaced = await self.results(
      failing,
      TestAsyncInterceptor.stream { try await $1($0).mapErrors { _ in ConnectError(code: .dataLoss) } }
    )
    XCTAssertEqual(replaced, ["headers", "1", "end data_loss"])
  }

  func testRecoverErrorsRetriesAStreamThatHasShownNothing() async {
    let transport = ScriptedTransport.replying([
      Self.serving([], .unavailable), Self.serving([], .unavailable), Self.serving(["1", "2"], nil),
    ])
    let headers = Box<[Headers]>([])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.streamResultFunction = { result, proceed in
            if case .headers(let value) = result { headers.value = headers.value + [value] }
            proceed(result)
          }
        },
        TestAsyncInterceptor.stream { request, next in
          try await next(request).recoverErrors { _ in
            try await next(request).recoverErrors { _ in try await next(request) }
          }
        },
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "1", "2", "end ok"])
    XCTAssertEqual(headers.value.map { $0["x-attempt"] }, [["2"]])
    XCTAssertEqual(transport.streams.map(\.sentMessages), Array(repeating: ["\"a\"", "\"b\""], count: 3))
  }

  func testRecoverErrorsBehindAMessageGoesOnWithAnotherResponse() async {
    let results = await self.results(
      [Self.serving(["1"], .unavailable)],
      TestAsyncInterceptor.stream { request, next in
        try await next(request).recoverErrors { _ in
          StreamResponse(StreamAnswer(headers: ["x": ["2"]], messages: ["cached"]))
        }
      }
    )
    XCTAssertEqual(results, ["headers", "1", "cached", "end ok"])
  }

  func testARetryBehindAMessageIsRefused() async {
    let transport = ScriptedTransport.replying([Self.serving(["1"], .unavailable), Self.serving(["2"], nil)])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestAsyncInterceptor.stream { request, next in
          try await next(request).recoverErrors { _ in try await next(request) }
        }
      ]
    )
    let results = await client.results()
    XCTAssertEqual(results, ["headers", "1", "end unavailable"])
    XCTAssertEqual(transport.streams.count, 1)
  }

  func testRecoverErrorsLeavesOthersAlone() async {
    let passing: [(InterceptorFactory, [String])] = [
      (
        TestAsyncInterceptor.stream { try await $1($0).recoverErrors { _ in nil } },
        ["headers", "end aborted"]
      ),
      (
        TestAsyncInterceptor.stream {
          try await $1($0).recoverErrors { _ in throw ConnectError(code: .dataLoss) }
        },
        ["headers", "end data_loss"]
      ),
      (
        TestAsyncInterceptor.stream { request, next in
          try await next(request).recoverErrors { error in
            StreamResponse(StreamAnswer(messages: ["x"], error: error))
          }
        },
        ["headers", "x", "end aborted"]
      ),
    ]
    for (interceptor, expected) in passing {
      let results = await self.results([Self.serving([], .aborted)], interceptor)
      XCTAssertEqual(results, expected)
      let good = await self.results([Self.serving(["1"], nil)], interceptor)
      XCTAssertEqual(good, ["headers", "1", "end ok"])
      let empty = await self.results([Self.serving([], nil)], interceptor)
      XCTAssertEqual(empty, ["headers", "end ok"])
    }
  }
}
