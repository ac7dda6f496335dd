import Connect
import ConnectTesting
import NIOCore
import XCTest

/// What a call keeps to, whatever hooks, callers and peers do.
final class CallRuleTests: XCTestCase {
  // MARK: A method is called as what it is

  func testAnotherKindOfCallIsRefused() async {
    let transport = ScriptedTransport { _ in XCTFail("nothing is to be sent") }
    let client = ProtocolClient.scripted(transport)

    let upload = client.clientStream(.unary)
    let uploaded = await upload.closeAndReceive()
    XCTAssertEqual(uploaded.code, .invalidArgument)
    XCTAssertEqual(
      uploaded.error?.message,
      "/test.Text/Unary is unary, and was called as clientStream; "
        + "use the client's function for its kind, or correct its MethodSpec"
    )
    let response = await client.unary(.serverStream, "a")
    XCTAssertEqual(response.code, .invalidArgument)
    for stream in [
      client.serverStream(.bidirectional, "a").results, client.bidirectionalStream(.unary).results,
    ] {
      var codes: [Code] = []
      for await case .complete(let code, _, _) in stream { codes.append(code) }
      XCTAssertEqual(codes, [.invalidArgument])
    }
    XCTAssertEqual(transport.streams.count, 0)
  }

  // MARK: A call that is over sends nothing

  /// Interceptors, codecs and policies run while a call starts, and may end it.
  func testACallThatEndsWhileItStartsSendsNothing() async {
    let transport = ScriptedTransport { _ in XCTFail("nothing is to be sent") }
    for place in ["interceptor", "hedging"] {
      let cancellation = CallCancellation()
      var options = CallOptions()
      options.context.cancellation = cancellation
      let client = ProtocolClient.scripted(
        transport,
        interceptors: place == "interceptor" ? [{ _ in Cancelling(cancellation: cancellation) }] : []
      ) {
        $0.hedging = { _ in
          if place == "hedging" { cancellation.cancel() }
          return HedgingPolicy(maximumAttempts: 2, delay: .seconds(1), allowsSideEffects: true)
        }
      }
      let response = await client.unary(.unary, "a", options: options)
      XCTAssertEqual(response.code, .canceled, place)
      guard place == "interceptor" else { continue }
      var codes: [Code] = []
      for await case .complete(let code, _, _) in client.serverStream(.serverStream, "a", options: options)
        .results
      {
        codes.append(code)
      }
      XCTAssertEqual(codes, [.canceled])
    }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.count, 0)
  }

  private struct Cancelling: Interceptor {
    let cancellation: CallCancellation

    func unaryFunction() -> UnaryFunction {
      self.cancellation.cancel()
      return UnaryFunction(requestFunction: { request, proceed in proceed(.success(request)) })
    }

    func streamFunction() -> StreamFunction {
      self.cancellation.cancel()
      return StreamFunction(requestFunction: { request, proceed in proceed(.success(request)) })
    }
  }

  // MARK: A code and an error agree

  func testACodeWithoutAnErrorIsNoSuccess() async {
    let transport = ScriptedTransport { stream in stream.reply(stream.sentMessage) }
    let answering = TestInterceptor.make {
      $0.unaryBytes.requestFunction = { _, proceed in proceed.answer(HTTPResponse(code: .notFound)) }
    }
    let replacing = TestInterceptor.make {
      $0.unaryMessages.responseFunction = { response, proceed in
        var response = response
        response.code = .aborted
        proceed(response)
      }
    }
    for (interceptor, code) in [(answering, Code.notFound), (replacing, .aborted)] {
      let client = ProtocolClient.scripted(transport, interceptors: [interceptor])
      let response = await client.unary(.unary, "a")
      XCTAssertEqual(response.code, code)
      XCTAssertEqual(response.error?.code, code)
    }
  }

  func testAnEndWithACodeWithoutAnErrorIsNoSuccess() async {
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        stream.endStream()
      }
    }
    let interceptor = TestInterceptor.make {
      $0.streamMessages.streamResultFunction = { result, proceed in
        guard case .complete = result else { return proceed(result) }
        proceed(.complete(code: .unavailable, error: nil, trailers: [:]))
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [interceptor])
    do {
      for try await message in client.serverStream(.serverStream, "a").messages { XCTFail("\(message)") }
      XCTFail("the stream did not fail")
    } catch {
      XCTAssertEqual((error as? ConnectError)?.code, .unavailable)
    }
  }

  // MARK: The deadline wins

  func testAfterTheDeadlineNoErrorOfThePeerCounts() async {
    for isReset in [true, false] {
      let transport = ScriptedTransport { stream in
        // The loop was busy: time has passed, and the timer has not run yet.
        stream.passTimeUnnoticed(.seconds(3))
        if isReset {
          stream.fail(ConnectError(code: .canceled, message: "reset by the peer"))
        } else {
          stream.reply(.unavailable, status: 504)
        }
      }
      let client = ProtocolClient.scripted(transport, timeout: .seconds(2))
      let response = await client.unary(.unary, "a")
      XCTAssertEqual(response.code, .deadlineExceeded)
    }
  }

  // MARK: A metrics hook that ends the call

  func testAMetricsHookMayCancel() async {
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.sendMessage("\"a\"")
    }
    let handle = Box<StreamHandle<Text, Text>?>(nil)
    let closing = TestInterceptor.make {
      $0.streamMessages.streamResultFunction = { result, proceed in
        guard case .message = result else { return proceed(result) }
        proceed(.complete(code: .ok, error: nil, trailers: [:]))
      }
    }
    let cancelling = TestInterceptor.make {
      $0.streamBytes.responseMetricsFunction = { metrics, proceed in
        handle.value?.cancel()
        proceed(metrics)
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [closing, cancelling])
    let ends = Signal<Code>()
    handle.value = client.bidirectionalStream(.bidirectional) { result in
      if case .complete(let code, _, _) = result { ends.fire(code) }
    }
    let code = await ends.wait()
    XCTAssertEqual(code, .ok)
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(ends.count, 0)
    XCTAssertEqual(transport.streams.first?.isCancelled, true)
  }

  /// An async interceptor answers while its `next` is pending, which gives up what goes on inside.
  func testAMetricsHookMayCancelWhenAnAttemptIsGivenUp() async {
    for isCancelled in [true, false] {
      let transport = ScriptedTransport.silent()
      let handle = Box<CallHandle?>(nil)
      let started = Signal<Void>()
      let hasHandle = Signal<Void>()
      let impatient = TestAsyncInterceptor.unary { request, next in
        let pending = Task { try await next(request) }
        await started.wait()
        await hasHandle.wait()
        if isCancelled {
          pending.cancel()
          _ = await pending.result
        }
        return ResponseMessage(message: "own")
      }
      let cancelling = TestInterceptor.make { interceptor in
        interceptor.unaryBytes.requestFunction = { request, proceed in
          proceed(.success(request))
          started.fire(())
        }
        interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
          handle.value?.cancel()
          proceed(metrics)
        }
      }
      let client = ProtocolClient.scripted(transport, interceptors: [impatient, cancelling])
      let ends = Signal<ResponseMessage<Text>>()
      handle.value = client.unary(.unary, "a") { ends.fire($0) }
      hasHandle.fire(())
      let response = await ends.wait()
      // When `next` was cancelled, the hook has cancelled the call before the interceptor could answer.
      XCTAssertEqual(response.code, isCancelled ? .canceled : .ok)
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(ends.count, 0)
      XCTAssertEqual(transport.streams.first?.isCancelled, true)
    }
  }

  /// An async interceptor ends a stream that goes on inside.
  func testAMetricsHookMayCancelWhenAStreamIsCutShort() async {
    let transport = ScriptedTransport { stream in
      stream.respondStream()
      stream.sendMessage("\"a\"")
    }
    let handle = Box<StreamHandle<Text, Text>?>(nil)
    let short = TestAsyncInterceptor.stream { request, next in
      _ = try await next(request)
      return StreamResponse(results: PulledSequence([.message("own")]))
    }
    let cancelling = TestInterceptor.make {
      $0.streamBytes.responseMetricsFunction = { metrics, proceed in
        handle.value?.cancel()
        proceed(metrics)
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [short, cancelling])
    let ends = Signal<Code>()
    handle.value = client.bidirectionalStream(.bidirectional) { result in
      if case .complete(let code, _, _) = result { ends.fire(code) }
    }
    let code = await ends.wait()
    XCTAssertEqual(code, .ok)
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(ends.count, 0)
    XCTAssertEqual(transport.streams.first?.isCancelled, true)
  }

  // MARK: Sending to nobody

  func testSendFailsOnceAnInterceptorHasEndedTheStream() async {
    let transport = ScriptedTransport { _ in XCTFail("nothing is to be sent") }
    let failing = TestInterceptor.make {
      $0.streamBytes.requestFunction = { _, proceed in
        proceed(.failure(ConnectError(code: .permissionDenied)))
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [failing])
    let stream = client.clientStream(.clientStream)
    do {
      for _ in 0..<10 { try await stream.send("a") }
      XCTFail("messages were accepted")
    } catch {
      XCTAssertEqual(error.code, .failedPrecondition)
    }
    let code = await stream.closeAndReceive().code
    XCTAssertEqual(code, .permissionDenied)
  }
}
