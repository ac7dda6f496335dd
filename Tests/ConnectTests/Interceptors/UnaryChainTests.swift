import Connect
import ConnectTesting
import NIOCore
import Synchronization
import XCTest

/// DESIGN.md, "Interceptors", for unary calls with closure hooks.
final class UnaryChainTests: XCTestCase {
  // MARK: Factories and order

  func testFactoriesRunOncePerCallInOrderOfLevels() async {
    let events = Events()
    let factory: @Sendable (String) -> InterceptorFactory = { name in
      { _ in
        events.add("make \(name)")
        return TestInterceptor()
      }
    }
    let client = ProtocolClient.scripted(.echo(), interceptors: [factory("client 1"), factory("client 2")]) {
      $0.methodInterceptors = { method in [factory("method \(method.name)")] }
    }
    for _ in 0..<2 {
      _ = await client.unary(.unary, "x", options: CallOptions(interceptors: [factory("call")]))
    }
    let once = ["make client 1", "make client 2", "make method Unary", "make call"]
    XCTAssertEqual(events.all, once + once)
  }

  func testAMethodsInterceptorsMayReplaceThoseOfTheClient() async {
    let events = Events()
    let factory: @Sendable (String) -> InterceptorFactory = { name in
      { _ in
        events.add(name)
        return TestInterceptor()
      }
    }
    let client = ProtocolClient.scripted(.echo(), interceptors: [factory("client")]) {
      $0.methodInterceptors = { method in
        switch method.name {
        case "Unary": .replacing([factory("instead")])
        case "ServerStream": .adding([factory("beside")])
        default: []
        }
      }
    }
    let options = CallOptions(interceptors: [factory("call")])
    _ = await client.unary(.unary, "x", options: options)
    for await _ in client.serverStream(.serverStream, "x", options: options).results {}
    for await _ in client.bidirectionalStream(.bidirectional, options: options).results { break }
    XCTAssertEqual(
      events.all,
      ["instead", "call"] + ["client", "beside", "call"] + ["client", "call"]
    )
  }

  func testRequestsPassInOrderAndResponsesInReverse() async throws {
    let probe = InterceptorProbe()
    let client = ProtocolClient.scripted(.echo(), interceptors: [probe.factory("A")]) {
      $0.methodInterceptors = { _ in [probe.factory("B")] }
    }
    let options = CallOptions(interceptors: [probe.factory("C")])
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(try response.get(), "x")
    XCTAssertEqual(
      probe.events.outline,
      [
        "A message request", "B message request", "C message request",
        "A byte request", "B byte request", "C byte request",
        "C byte response ok", "B byte response ok", "A byte response ok",
        "C message response ok", "B message response ok", "A message response ok",
      ]
    )
  }

  func testSameInstanceAcrossRetries() async {
    let made = Box(0)
    let seen = Events()
    let transport = ScriptedTransport.replying([{ $0.reply(.unavailable) }, { $0.reply("\"ok\"") }])
    let factory: InterceptorFactory = { _ in
      let number = made.increment()
      var requests = 0
      var interceptor = TestInterceptor()
      interceptor.unaryMessages = UnaryMessageFunction(
        requestFunction: { request, proceed in
          requests += 1
          seen.add("instance \(number) request \(requests)")
          proceed(.success(request))
        },
        responseFunction: { response, proceed in
          if response.error != nil { proceed.retry() } else { proceed(response) }
        }
      )
      return interceptor
    }
    let response = await ProtocolClient.scripted(transport, interceptors: [factory]).unary(.unary, "x")
    XCTAssertEqual(response.message, "ok")
    XCTAssertEqual(seen.all, ["instance 1 request 1", "instance 1 request 2"])
  }

  // MARK: Changing what passes

  func testMessageHooksSeeMessagesAndByteHooksSeeBytes() async {
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages = UnaryMessageFunction(
            requestFunction: { request, proceed in
              var request = request
              request.message = Text(request.message.text + "1")
              proceed(.success(request))
            },
            responseFunction: { response, proceed in
              var response = response
              response.result = response.result.map { Text($0.text + "4") }
              proceed(response)
            }
          )
          interceptor.unaryBytes = UnaryFunction(
            requestFunction: { request, proceed in
              XCTAssertEqual(String(buffer: request.message), "\"x1\"")
              var request = request
              request.message = ByteBuffer(string: "\"x12\"")
              proceed(.success(request))
            },
            responseFunction: { response, proceed in
              XCTAssertEqual(String(buffer: response.message), "\"x12\"")
              XCTAssertEqual(response.httpStatus, 200)
              var response = response
              response.message = ByteBuffer(string: "\"x123\"")
              proceed(response)
            }
          )
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x1234")
  }

  func testProceedFromAnotherThreadAfterTheHookHasReturned() async {
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages = UnaryMessageFunction(
            requestFunction: { request, proceed in Task.detached { proceed(.success(request)) } },
            responseFunction: { response, proceed in Task.detached { proceed(response) } }
          )
          interceptor.unaryBytes = UnaryFunction(
            requestFunction: { request, proceed in Task.detached { proceed(.success(request)) } },
            responseFunction: { response, proceed in Task.detached { proceed(response) } }
          )
        }
      ]
    )
    for _ in 0..<200 {
      let outcome = client.outcome(of: "x").outcome
      let response = await outcome.wait()
      XCTAssertEqual(response.message, "x", "\(response)")
    }
  }

  // MARK: Failing and answering

  func testFailingAtEachPosition() async {
    for failing in 0..<3 {
      let probe = InterceptorProbe()
      let transport = ScriptedTransport.echo()
      var factories = ["A", "B", "C"].map { probe.factory($0) }
      factories[failing] = TestInterceptor.make { interceptor in
        interceptor.unaryMessages = UnaryMessageFunction(
          requestFunction: { _, proceed in
            proceed(.failure(ConnectError(code: .aborted, message: "no")))
          },
          responseFunction: { response, proceed in
            XCTFail("its own hook must not see the error")
            proceed(response)
          }
        )
      }
      let codec = CountingCodec()
      let client = ProtocolClient.scripted(transport, interceptors: factories) { $0.codec = codec }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.error?.code, .aborted)
      XCTAssertEqual(response.error?.message, "no")
      let outside = ["A", "B", "C"].prefix(failing)
      XCTAssertEqual(
        probe.events.outline,
        outside.map { "\($0) message request" } + outside.reversed().map { "\($0) message response aborted" }
      )
      XCTAssertEqual(transport.streams.count, 0)
      XCTAssertEqual(codec.encodes, 0)
    }
  }

  func testFailingInAByteHookGoesUpThroughOuterByteHooksAndAllMessageHooks() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A"),
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes = UnaryFunction(
            requestFunction: { _, proceed in proceed(.failure(ConnectError(code: .aborted))) },
            responseFunction: { response, proceed in
              XCTFail("its own hook must not see the error")
              proceed(response)
            }
          )
        },
        probe.factory("C"),
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.code, .aborted)
    XCTAssertEqual(
      probe.events.outline,
      [
        "A message request", "C message request", "A byte request", "A byte response aborted",
        "C message response aborted", "A message response aborted",
      ]
    )
    XCTAssertEqual(transport.streams.count, 0)
  }

  func testAnsweringAtEachPosition() async {
    for answering in 0..<3 {
      for isByteLevel in [false, true] {
        let probe = InterceptorProbe()
        let transport = ScriptedTransport.echo()
        var factories = ["A", "B", "C"].map { probe.factory($0) }
        factories[answering] = TestInterceptor.make { interceptor in
          if isByteLevel {
            interceptor.unaryBytes = UnaryFunction(
              requestFunction: { _, proceed in
                proceed.answer(HTTPResponse(message: ByteBuffer(string: "\"cached\"")))
              },
              responseFunction: { _, _ in XCTFail("its own hook must not see the answer") }
            )
          } else {
            interceptor.unaryMessages = UnaryMessageFunction(
              requestFunction: { _, proceed in proceed.answer(ResponseMessage(message: "cached")) },
              responseFunction: { _, _ in XCTFail("its own hook must not see the answer") }
            )
          }
        }
        let response = await ProtocolClient.scripted(transport, interceptors: factories).unary(.unary, "x")
        XCTAssertEqual(response.message, "cached")
        XCTAssertEqual(transport.streams.count, 0)
        let outside = Array(["A", "B", "C"].prefix(answering))
        let others = ["A", "B", "C"].enumerated().filter { $0.offset != answering }.map(\.element)
        let expected =
          isByteLevel
          ? others.map { "\($0) message request" } + outside.map { "\($0) byte request" }
            + outside.reversed().map { "\($0) byte response ok" }
            + others.reversed().map { "\($0) message response ok" }
          : outside.map { "\($0) message request" } + outside.reversed().map { "\($0) message response ok" }
        XCTAssertEqual(probe.events.outline, expected)
      }
    }
  }

  // MARK: Replacing

  func testReplacingErrorByResponseResponseByErrorErrorByError() async {
    func outcome(
      _ script: @escaping ScriptedTransport.Script,
      _ replace: @escaping @Sendable (ResponseMessage<Text>) -> ResponseMessage<Text>
    ) async -> ResponseMessage<Text> {
      let probe = InterceptorProbe()
      let client = ProtocolClient.scripted(
        ScriptedTransport(script),
        interceptors: [
          probe.factory("A"),
          TestInterceptor.make { interceptor in
            interceptor.unaryMessages.responseFunction = { response, proceed in proceed(replace(response)) }
          },
        ]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(probe.events.last?.outline, "A message response \(response.code)")
      return response
    }
    let rescued = await outcome({ $0.reply(.unavailable) }) { _ in ResponseMessage(message: "rescued") }
    XCTAssertEqual(rescued.message, "rescued")
    let failed = await outcome({ $0.reply("\"fine\"") }) { _ in
      ResponseMessage(error: ConnectError(code: .dataLoss))
    }
    XCTAssertEqual(failed.error?.code, .dataLoss)
    let other = await outcome({ $0.reply(.unavailable) }) { _ in
      ResponseMessage(error: ConnectError(code: .aborted))
    }
    XCTAssertEqual(other.error?.code, .aborted)
  }

  func testReplacingInByteHooks() async {
    let client = ProtocolClient.scripted(
      ScriptedTransport { $0.reply(.unavailable, status: 503) },
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.responseFunction = { response, proceed in
            XCTAssertEqual(response.error?.httpStatus, 503)
            XCTAssertEqual(response.httpStatus, 503)
            XCTAssertEqual(response.httpHeaders["Content-Type"], ["application/json"])
            proceed(HTTPResponse(message: ByteBuffer(string: "\"rescued\"")))
          }
        }
      ]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "rescued")
  }

  // MARK: 304

  func testNotModifiedReachesByteHooksAsAResponse() async {
    let notModified: ScriptedTransport.Script = { stream in
      stream.respond(status: 304, headers: ["etag": ["\"1\""]])
      stream.end()
    }
    let conditional = CallOptions(headers: ["if-none-match": ["\"1\""]])
    let seen = Events()
    let client = ProtocolClient.scripted(
      ScriptedTransport(notModified),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.responseFunction = { response, proceed in
            seen.add("\(response.httpStatus ?? 0) \(response.error == nil) \(response.httpHeaders["etag"])")
            var response = response
            response.message = ByteBuffer(string: "\"cached\"")
            proceed(response)
          }
        }
      ]
    )
    let answered = await client.unary(.unary, "x", options: conditional)
    XCTAssertEqual(answered.message, "cached")
    XCTAssertEqual(seen.all, ["304 true [\"\\\"1\\\"\"]"])

    let unanswered = await ProtocolClient.scripted(ScriptedTransport(notModified))
      .unary(.unary, "x", options: conditional)
    XCTAssertEqual(unanswered.error?.code, .unknown)
    XCTAssertEqual(unanswered.error?.httpStatus, 304)

    let unasked = await client.unary(.unary, "x")
    XCTAssertEqual(seen.all.last, "304 false [\"\\\"1\\\"\"]")
    XCTAssertEqual(unasked.code, .unknown)
  }

  // MARK: Context

  func testContextTravelsAndIsKeptByARequestMadeAnew() async {
    let seen = Events()
    var options = CallOptions()
    options.context[Key.self] = "caller"
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.requestFunction = { request, proceed in
            seen.add(request.context[Key.self])
            proceed(
              .success(
                HTTPRequest(
                  url: request.url,
                  contentType: request.contentType,
                  headers: request.headers,
                  message: request.message
                )
              )
            )
          }
        },
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.requestFunction = { request, proceed in
            seen.add(request.context[Key.self])
            var request = request
            request.context[Key.self] = "hook"
            proceed(.success(request))
          }
          interceptor.unaryBytes.requestFunction = { request, proceed in
            seen.add(request.context[Key.self])
            proceed(.success(request))
          }
        },
        TestAsyncInterceptor.unary { request, next in
          seen.add(request.context[Key.self])
          return try await next(
            HTTPRequest(url: request.url, contentType: request.contentType, message: request.message)
          )
        },
      ]
    )
    _ = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(seen.all, ["caller", "caller", "hook", "hook"])
  }

  // MARK: Metrics

  func testMetricsOfEachAttemptPassInReverse() async {
    let events = Events()
    let transport = ScriptedTransport.replying([
      { $0.reply(.unavailable, status: 503) }, { $0.reply("\"ok\"") },
    ])
    let recorder: @Sendable (String) -> InterceptorFactory = { name in
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
          events.add("\(name) \(metrics.attempt) \(metrics.httpStatus ?? 0) \(metrics.requestBodyBytes)")
          proceed(metrics)
        }
        if name == "B" {
          interceptor.unaryBytes.responseFunction = { response, proceed in
            events.add("response")
            if response.error != nil { proceed.retry() } else { proceed(response) }
          }
        }
      }
    }
    let response = await ProtocolClient.scripted(transport, interceptors: [recorder("A"), recorder("B")])
      .unary(.unary, "x")
    XCTAssertEqual(response.message, "ok")
    XCTAssertEqual(
      events.all,
      ["B 1 503 3", "A 1 503 3", "response", "B 2 200 3", "A 2 200 3", "response"]
    )
  }

  private enum Key: CallContextKey { static let defaultValue = "none" }
}
