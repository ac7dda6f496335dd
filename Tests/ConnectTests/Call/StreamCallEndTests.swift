import Connect
import ConnectTesting
import NIOCore
import XCTest

/// How a stream ends: once, at whatever stage, with the server told of it and with nothing left behind.
final class StreamCallEndTests: XCTestCase {
  private static let large = String(repeating: "x", count: 40_000)

  // MARK: Deadline and cancellation

  private enum End: CaseIterable {
    case deadline, cancellation, cancellationOnTheExecutor

    var code: Code { self == .deadline ? .deadlineExceeded : .canceled }
  }

  /// How far a stream has got when its end comes.
  private struct Stage {
    let name: String
    /// Which values a hook keeps.
    var holds: String?
    var prepare: @Sendable (SteppedStream) -> Void = { _ in }
    /// What the caller has got by then.
    var results: [String] = []
    /// What the caller has sent.
    var sends: [String] = []
    /// Whether some of that still waits.
    var leavesSends = false
    /// What the attempt is asked for last.
    var lastCall: String? = "cancel"
  }

  private static let stages = [
    Stage(
      name: "a hook holds the head",
      holds: "head",
      prepare: { $0.send("a") },
      sends: ["a"],
      leavesSends: true,
      lastCall: nil
    ),
    Stage(name: "before anything was sent"),
    Stage(name: "before headers", prepare: { $0.send("a") }, sends: ["a"]),
    Stage(name: "after headers", prepare: { $0.server { $0.respondStream() } }, results: ["headers"]),
    Stage(
      name: "between messages",
      prepare: { stream in
        stream.server { $0.respondStream() }
        stream.reply("1", "2")
      },
      results: ["headers", "1", "2"]
    ),
    Stage(
      name: "in the middle of a message",
      prepare: { stream in
        stream.server { scripted in
          scripted.respondStream()
          scripted.send(ByteBuffer(bytes: [0, 0, 0, 0, 3, UInt8(ascii: "\"")]))
        }
      },
      results: ["headers"]
    ),
    Stage(
      name: "after the half-close",
      prepare: { stream in
        stream.send("a")
        stream.finish()
        stream.server { $0.respondStream() }
      },
      results: ["headers"],
      sends: ["a"]
    ),
    Stage(
      name: "while messages wait for the transport",
      prepare: { stream in
        stream.server { $0.isWritable = false }
        stream.send(large, large, "a", "b", "c", "d", "e", "f")
        stream.finish()
      },
      sends: ["xxxxxxxx", "xxxxxxxx", "a", "b", "c", "d", "e", "f"],
      leavesSends: true
    ),
    Stage(
      name: "a hook holds a message",
      holds: "a",
      prepare: { stream in
        stream.send("a", "b", "c")
        stream.finish()
      },
      sends: ["a", "b", "c"],
      leavesSends: true
    ),
    Stage(
      name: "a hook holds a result",
      holds: "1",
      prepare: { stream in
        stream.server { $0.respondStream() }
        stream.reply("0", "1", "2")
      },
      results: ["headers", "0"]
    ),
    Stage(
      name: "a hook holds the end",
      holds: "end ok",
      prepare: { stream in
        stream.server { scripted in
          scripted.respondStream()
          scripted.sendMessage("\"0\"")
          scripted.endStream()
        }
      },
      results: ["headers", "0"],
      lastCall: nil
    ),
  ]

  /// A hook on messages that keeps what the stage says.
  private static func holding(_ what: String?, _ kept: Box<[any Sendable]>) -> InterceptorFactory {
    TestInterceptor.make { interceptor in
      interceptor.streamMessages = StreamMessageFunction(
        requestFunction: { request, proceed in
          guard what == "head" else { return proceed(.success(request)) }
          kept.value = kept.value + [proceed]
        },
        requestMessageFunction: { message, proceed in
          guard what == message.text else { return proceed(message) }
          kept.value = kept.value + [proceed]
        },
        streamResultFunction: { result, proceed in
          guard what == result.short else { return proceed(result) }
          kept.value = kept.value + [proceed]
        }
      )
    }
  }

  func testDeadlineAndCancellationAtEveryStage() {
    for stage in Self.stages {
      for end in End.allCases {
        let what = "\(stage.name), \(end)"
        let kept = Box<[any Sendable]>([])
        let stream = SteppedStream(
          interceptors: [Self.holding(stage.holds, kept)],
          timeout: .seconds(10),
          configure: { $0.limits.maximumWaitingValues = 2 }
        )
        stage.prepare(stream)
        XCTAssertEqual(stream.results, stage.results, what)
        let sentCount = stream.answers.count
        let handler = stream.attempts.last?.handler
        switch end {
        case .deadline:
          stream.executor.advance(by: .seconds(9))
          XCTAssertEqual(stream.results, stage.results, what)
          stream.executor.advance(by: .seconds(1))
        case .cancellation:
          stream.cancel()
        case .cancellationOnTheExecutor:
          stream.executor.sync { stream.handle.cancel() }
        }
        let expected = stage.results + ["end \(end.code)"]
        let answers = stage.sends.enumerated().map { index, text in
          "\(text) \(index < sentCount ? "sent" : "failed_precondition")"
        }
        XCTAssertEqual(stream.answers, answers, what)
        XCTAssertEqual(sentCount < stage.sends.count, stage.leavesSends, what)
        XCTAssertEqual(stream.attempts.last?.calls.last(where: { $0 == "cancel" }), stage.lastCall, what)
        self.breakTheRules(stream, handler)
        stream.assertEnded(expected, what)
        stream.send("late")
        stream.finish()
        stream.request(1)
        XCTAssertEqual(stream.answers.last, "late failed_precondition", what)
        XCTAssertEqual(
          stream.attempts.last?.calls.count { $0 == "cancel" } ?? 0,
          stage.lastCall == nil ? 0 : 1,
          what
        )
        stream.assertEnded(expected, what)
      }
    }
  }

  /// Goes on with a stream that is over, as no transport should.
  private func breakTheRules(_ stream: SteppedStream, _ handler: (any HTTPStreamHandler)?) {
    stream.executor.sync {
      handler?.streamDidBecomeWritable()
      handler?.streamDidReceive(
        HTTPResponseHead(status: 200, headers: ["content-type": ["application/connect+json"]])
      )
      handler?.streamDidReceive(ByteBuffer(bytes: [0, 0, 0, 0, 3] + Array("\"x\"".utf8)))
      handler?.streamDidEnd(trailers: Headers())
      handler?.streamDidFail(HTTPStreamFailure(error: ConnectError(code: .aborted), isUnprocessed: true))
    }
    stream.executor.runUntilIdle()
  }

  /// Results that have arrived and were not given yet are dropped when a callback cancels.
  func testCancellingFromWithinAResultDropsTheOthers() {
    for place in ["headers", "1", "2"] {
      let handle = Box<StreamHandle<Text, Text>?>(nil)
      let stream = SteppedStream(onResult: { if $0 == place { handle.value?.cancel() } })
      handle.value = stream.handle
      stream.server { scripted in
        scripted.respondStream()
        for message in ["\"1\"", "\"2\"", "\"3\""] { scripted.sendMessage(message) }
        scripted.endStream()
      }
      let given = ["headers", "1", "2"]
      let expected = given.prefix(through: given.firstIndex(of: place) ?? 0) + ["end canceled"]
      stream.assertEnded(Array(expected))
      handle.value = nil
    }
  }

  /// The caller may do anything in its last callback; none of it starts the call again.
  func testCallsFromWithinTheEndDoNothing() {
    let handle = Box<StreamHandle<Text, Text>?>(nil)
    let codes = Box<[Code?]>([])
    let stream = SteppedStream(onResult: { result in
      guard result.hasPrefix("end") else { return }
      handle.value?.send("late") { codes.value = codes.value + [$0?.code] }
      handle.value?.finish()
      handle.value?.request(1)
      handle.value?.cancel()
    })
    handle.value = stream.handle
    stream.server { scripted in
      scripted.respondStream()
      scripted.endStream(.aborted)
    }
    stream.assertEnded(["headers", "end aborted"])
    XCTAssertEqual(codes.value, [.failedPrecondition])
    XCTAssertEqual(stream.attempts[0].calls, [])
    handle.value = nil
  }

  // MARK: The server ends

  /// The server has ended: what waits is answered once, in order, and nothing more is written.
  func testTheEndComesWhileMessagesWait() {
    for isFailure in [false, true] {
      let stream = SteppedStream { $0.isWritable = false }
      stream.send(Self.large, Self.large, "a", "b")
      stream.finish()
      stream.server { scripted in
        if isFailure { return scripted.fail(ConnectError(code: .aborted)) }
        scripted.respondStream()
        scripted.endStream()
      }
      XCTAssertEqual(
        stream.answers,
        ["xxxxxxxx sent", "xxxxxxxx sent", "a failed_precondition", "b failed_precondition"]
      )
      XCTAssertEqual(stream.attempts[0].calls, ["write 40007", "write 40007"])
      stream.assertEnded(isFailure ? ["end aborted"] : ["headers", "end ok"])
    }
  }

  /// An end that nobody has asked for yet does not let messages pile up.
  func testSendingBehindAnEndThatWasNotAskedFor() {
    let stream = SteppedStream(demand: 0)
    stream.server { scripted in
      scripted.respondStream()
      scripted.endStream()
    }
    stream.send("a", "b")
    XCTAssertEqual(stream.answers, ["a failed_precondition", "b failed_precondition"])
    XCTAssertEqual(stream.results, [])
    stream.request(5)
    stream.assertEnded(["headers", "end ok"])
  }

  /// What comes behind the end of the protocol is an error, not a message.
  func testMessagesBehindTheEndAreReported() {
    let stream = SteppedStream()
    stream.server { scripted in
      scripted.respondStream()
      scripted.sendMessage("\"1\"")
      scripted.send(ByteBuffer(bytes: [2, 0, 0, 0, 2] + Array("{}".utf8)))
      scripted.sendMessage("\"2\"")
      scripted.end()
    }
    stream.assertEnded(["headers", "1", "end internal"])
  }

  /// An end of the protocol alone is not the end of the call: the server may still take messages.
  func testTheEndOfTheProtocolWaitsForTheEndOfTheStream() {
    let stream = SteppedStream()
    stream.server { scripted in
      scripted.respondStream()
      scripted.send(ByteBuffer(bytes: [2, 0, 0, 0, 2] + Array("{}".utf8)))
    }
    XCTAssertEqual(stream.results, ["headers"])
    stream.server { $0.end() }
    stream.assertEnded(["headers", "end ok"])
  }
}
