import Connect
import ConnectTesting
import NIOCore
import XCTest

/// One attempt of a call on the wire: what it sends, what it makes of what comes back, and that it stays silent once it
/// was given up.
final class AttemptTests: XCTestCase {
  // MARK: Request

  /// The whole of a unary request goes out at once; a stream's head goes first.
  func testStart() async {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(transport, timeout: .seconds(3))
    let response = await client.unary(.unary, "a")
    XCTAssertEqual(response.message, "a")
    let unary = transport.streams[0]
    XCTAssertEqual(unary.request.method, .post)
    XCTAssertEqual(unary.request.target, "/test.Text/Unary")
    XCTAssertEqual(unary.request.headers["content-type"], ["application/json"])
    XCTAssertEqual(unary.request.headers["connect-timeout-ms"], ["3000"])
    XCTAssertEqual(unary.sentMessage, "\"a\"")
    XCTAssertEqual(unary.calls, [], "the request is complete")

    let stream = SteppedStream(timeout: .seconds(3))
    let started = stream.attempts[0]
    XCTAssertEqual(started.request.target, "/test.Text/Bidi")
    XCTAssertEqual(started.request.headers["content-type"], ["application/connect+json"])
    XCTAssertEqual(started.request.headers["connect-timeout-ms"], ["3000"])
    guard case .streamed = started.request.body else { return XCTFail("the body is complete") }
    stream.send("a", "b")
    stream.finish()
    XCTAssertEqual(started.calls, ["write 8", "write 8", "finish"])
    stream.cancel()
  }

  /// Ways to make a second attempt, one second after the first, which takes 2.5 seconds.
  private static let repeating: [(name: String, factories: [InterceptorFactory])] = [
    (
      "a message hook",
      [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if response.code == .aborted { proceed.retry(after: .seconds(1)) } else { proceed(response) }
          }
          interceptor.streamMessages.streamResultFunction = { result, proceed in
            if result.short == "end aborted" { proceed.retry(after: .seconds(1)) } else { proceed(result) }
          }
        }
      ]
    ),
    (
      "a byte hook",
      [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.responseFunction = { response, proceed in
            if response.code == .aborted { proceed.retry(after: .seconds(1)) } else { proceed(response) }
          }
          interceptor.streamBytes.streamResultFunction = { result, proceed in
            if result.short == "end aborted" { proceed.retry(after: .seconds(1)) } else { proceed(result) }
          }
        }
      ]
    ),
  ]

  /// Each attempt tells the server what is left then, and is the first one as far as the server knows.
  func testTheTimeoutShrinksFromAttemptToAttempt() async {
    for (name, factories) in Self.repeating {
      for isStream in [false, true] {
        let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
        let executor = transport.virtualExecutor
        let client = ProtocolClient.scripted(transport, interceptors: factories, timeout: .seconds(10))
        let ends = Events()
        if isStream {
          let handle = client.bidirectionalStream(.bidirectional) { ends.add($0.short) }
          handle.send("a")
          handle.finish()
        } else {
          client.unary(.unary, "a") { ends.add("end \($0.code)") }
        }
        executor.advance(by: .milliseconds(2500))
        executor.sync { transport.streams[0].fail(ConnectError(code: .aborted)) }
        executor.advance(by: .milliseconds(999))
        XCTAssertEqual(transport.streams.count, 1, name)
        executor.advance(by: .milliseconds(1))
        XCTAssertEqual(
          transport.streams.map { $0.request.headers["connect-timeout-ms"] },
          [["10000"], ["6500"]],
          "\(name), stream: \(isStream)"
        )
        XCTAssertEqual(transport.streams.map(\.body), Array(repeating: transport.streams[0].body, count: 2))
        XCTAssertEqual(transport.streams[1].request.headers["grpc-previous-rpc-attempts"], [])
        // The deadline is that of the call, not of the attempt.
        executor.advance(by: .milliseconds(6499))
        XCTAssertEqual(ends.all, [])
        executor.advance(by: .milliseconds(1))
        XCTAssertEqual(ends.all, ["end deadline_exceeded"])
        XCTAssertEqual(transport.streams.map(\.isCancelled), [false, true])
        XCTAssertEqual(executor.scheduled, [])
      }
    }
  }

  /// `next` of an async interceptor and the transparent retry go out with what is left, too.
  func testTheTimeoutOfOtherWaysToTryAgain() async {
    let again = TestAsyncInterceptor(
      unary: { request, next in
        let response = try await next(request)
        return response.error == nil ? response : try await next(request)
      },
      stream: { request, next in try await next(request).recoverErrors { _ in try await next(request) } }
    )
    for isTransparent in [false, true] {
      for isStream in [false, true] {
        let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
        let executor = transport.virtualExecutor
        let client = ProtocolClient.scripted(
          transport,
          interceptors: isTransparent ? [] : [{ _ in again }],
          timeout: .seconds(10)
        )
        let ends = Events()
        if isStream {
          let handle = client.bidirectionalStream(.bidirectional) { ends.add($0.short) }
          handle.send("a")
          handle.finish()
        } else {
          client.unary(.unary, "a") { ends.add("end \($0.code)") }
        }
        executor.advance(by: .milliseconds(2500))
        executor.sync {
          transport.streams[0].fail(ConnectError(code: .aborted), isUnprocessed: isTransparent)
        }
        executor.runUntilIdle()
        let what = "transparent: \(isTransparent), stream: \(isStream)"
        XCTAssertEqual(
          transport.streams.map { $0.request.headers["connect-timeout-ms"] },
          [["10000"], ["7500"]],
          what
        )
        XCTAssertEqual(transport.streams.map(\.body), Array(repeating: transport.streams[0].body, count: 2))
        executor.advance(by: .seconds(7.5))
        XCTAssertEqual(ends.all, ["end deadline_exceeded"], what)
        XCTAssertEqual(transport.streams.map(\.isCancelled), [false, true], what)
      }
    }
  }

  // MARK: Response

  private struct Reply {
    let name: String
    let stream: ScriptedTransport.Script
    let unary: ScriptedTransport.Script
    /// What a stream comes to.
    let results: [String]
    /// What a unary call comes to.
    let code: Code
    var httpStatus: Int?
    var isConnectionLost = false
  }

  private static let json: Headers = ["content-type": ["application/json"]]
  private static let lost = ConnectError(code: .unavailable, message: "reset")

  private static let replies = [
    Reply(
      name: "an error before headers",
      stream: { $0.fail(lost) },
      unary: { $0.fail(lost) },
      results: ["end unavailable"],
      code: .unavailable,
      isConnectionLost: true
    ),
    Reply(
      name: "an error after headers",
      stream: { stream in
        stream.respondStream()
        stream.fail(lost)
      },
      unary: { stream in
        stream.respond(headers: json)
        stream.fail(lost)
      },
      results: ["headers", "end unavailable"],
      code: .unavailable,
      httpStatus: 200,
      isConnectionLost: true
    ),
    Reply(
      name: "an error in the middle of a message",
      stream: { stream in
        stream.respondStream()
        stream.send(ByteBuffer(bytes: [0, 0, 0]))
        stream.fail(lost)
      },
      unary: { stream in
        stream.respond(headers: json)
        stream.send(ByteBuffer(string: "\"a"))
        stream.fail(lost)
      },
      results: ["headers", "end unavailable"],
      code: .unavailable,
      httpStatus: 200,
      isConnectionLost: true
    ),
    Reply(
      name: "an error behind a whole message",
      stream: { stream in
        stream.respondStream()
        stream.sendMessage("\"a\"")
        stream.fail(lost)
      },
      unary: { stream in
        stream.respond(headers: json)
        stream.send(ByteBuffer(string: "\"a\""))
        stream.fail(lost)
      },
      results: ["headers", "a", "end unavailable"],
      code: .unavailable,
      httpStatus: 200,
      isConnectionLost: true
    ),
    Reply(
      name: "an end without a head",
      stream: { $0.end() },
      unary: { $0.end() },
      results: ["end internal"],
      code: .internalError
    ),
    Reply(
      name: "an end in the middle of a message",
      stream: { stream in
        stream.respondStream()
        stream.send(ByteBuffer(bytes: [0, 0, 0]))
        stream.end()
      },
      unary: { stream in
        stream.respond(headers: json)
        stream.send(ByteBuffer(string: "\"a"))
        stream.end()
      },
      results: ["headers", "end internal"],
      code: .internalError,
      httpStatus: 200
    ),
    Reply(
      name: "a head alone",
      stream: { stream in
        stream.respondStream()
        stream.end()
      },
      unary: { stream in
        stream.respond(headers: json)
        stream.end()
      },
      results: ["headers", "end internal"],
      code: .internalError,
      httpStatus: 200
    ),
    Reply(
      name: "an error status alone",
      stream: { stream in
        stream.respond(status: 503, headers: Headers())
        stream.end()
      },
      unary: { stream in
        stream.respond(status: 503, headers: Headers())
        stream.end()
      },
      results: ["headers", "end unavailable"],
      code: .unavailable,
      httpStatus: 503
    ),
  ]

  /// Where a response breaks off, the caller gets what came before, and one error.
  func testErrorsAtEveryStage() async {
    for reply in Self.replies {
      let stream = SteppedStream(script: reply.stream)
      stream.assertEnded(reply.results, reply.name)
      XCTAssertEqual(stream.attempts.count, 1, reply.name)
      let transport = ScriptedTransport(reply.unary)
      let response = await ProtocolClient.scripted(transport).unary(.unary, "a")
      XCTAssertEqual(response.code, reply.code, reply.name)
      XCTAssertEqual(response.error?.httpStatus, reply.httpStatus, reply.name)
      XCTAssertEqual(response.error?.isConnectionLost, reply.isConnectionLost, reply.name)
      XCTAssertEqual(transport.streams.count, 1, reply.name)
      XCTAssertEqual(transport.streams[0].calls.filter { $0 == "cancel" }, [], reply.name)
    }
  }

  /// A unary response means the same in whatever pieces it arrives, and nothing is said before it is complete.
  func testAUnaryResponseInPieces() {
    let body = ByteBuffer(string: "\"a long text of several bytes\"")
    for size in 1...body.readableBytes {
      let transport = ScriptedTransport({ _ in }, executor: VirtualExecutor())
      let executor = transport.virtualExecutor
      let outcomes = Events()
      ProtocolClient.scripted(transport).unary(.unary, "a") { response in
        outcomes.add(response.message?.text ?? "\(response.code)")
      }
      executor.runUntilIdle()
      let stream = transport.streams[0]
      executor.sync { stream.respond(headers: Self.json) }
      var rest = body
      while rest.readableBytes > 0 {
        let piece = rest.readSlice(length: min(size, rest.readableBytes)) ?? ByteBuffer()
        executor.sync { stream.send(piece) }
        executor.runUntilIdle()
        XCTAssertEqual(outcomes.all, [], "pieces of \(size)")
      }
      executor.sync { stream.end() }
      XCTAssertEqual(outcomes.all, ["a long text of several bytes"], "pieces of \(size)")
    }
  }

  /// A gRPC response whose head is its end, too: no headers show, and the attempt is over.
  func testTrailersOnly() async {
    let script: ScriptedTransport.Script = { stream in
      stream.respond(
        headers: ["content-type": ["application/grpc+json"], "grpc-status": ["5"], "grpc-message": ["gone"]]
      )
      stream.end()
    }
    let stream = SteppedStream(script: script, configure: { $0.networkProtocol = .grpc })
    XCTAssertEqual(stream.results.last, "end not_found")
    XCTAssertEqual(stream.results.count { $0.hasPrefix("end") }, 1)
    stream.send("late")
    XCTAssertEqual(stream.answers, ["late failed_precondition"])
    let transport = ScriptedTransport(script)
    let response = await ProtocolClient.scripted(transport) { $0.networkProtocol = .grpc }.unary(.unary, "a")
    XCTAssertEqual(response.code, .notFound)
    XCTAssertEqual(response.error?.message, "gone")
    XCTAssertEqual(transport.streams.count, 1)
  }
}
