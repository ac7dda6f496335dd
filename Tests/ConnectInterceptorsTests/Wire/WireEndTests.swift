import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import XCTest

/// Each exchange ends exactly once, for the call, for the transport and for interceptors.
final class WireEndTests: XCTestCase {
  private let notes = WireNotes()

  /// An interceptor that holds one kind of part, and notes its end.
  private func holder(_ kind: String) -> WireInterceptorFactory {
    { [notes] _ in
      var function = WireFunction(endFunction: { notes.add("held \($0.word)") })
      switch kind {
      case "head": function.requestHeadFunction = { head, proceed in notes.keep { proceed(head) } }
      case "chunk": function.requestChunkFunction = { bytes, proceed in notes.keep { proceed(bytes) } }
      case "end": function.requestEndFunction = { trailers, proceed in notes.keep { proceed(trailers) } }
      case "response": function.responseHeadFunction = { head, proceed in notes.keep { proceed(head) } }
      case "bytes": function.responseChunkFunction = { bytes, proceed in notes.keep { proceed(bytes) } }
      case "failure": function.failureFunction = { failure, proceed in notes.keep { proceed(failure) } }
      default: function.responseEndFunction = { trailers, proceed in notes.keep { proceed(trailers) } }
      }
      return function
    }
  }

  private static let stages = ["head", "chunk", "end", "response", "bytes", "failure", "trailers"]

  private func drive(_ scene: WireScene, fails: Bool) {
    scene.write("x")
    scene.finish()
    scene.respond()
    scene.receive("y")
    if fails {
      scene.fail(HTTPStreamFailure(error: ConnectError(code: .unavailable)))
    } else {
      scene.end()
    }
  }

  func testCancelAtEachStage() throws {
    for stage in Self.stages {
      for expires in [false, true] {
        self.notes.notes = []
        self.notes.proceeds = []
        let scene = try WireScene([self.notes.watcher("a"), self.holder(stage)]).start()
        if ["head", "chunk", "end"].contains(stage) {
          // A response would end the request.
          scene.write("x")
          scene.finish()
        } else {
          self.drive(scene, fails: stage == "failure")
        }
        XCTAssertFalse(scene.caller.isOver, stage)
        XCTAssertEqual(self.notes.proceeds.count, 1, stage)
        let heard = scene.caller.events
        if expires { scene.expire() } else { scene.cancel() }
        scene.cancel()
        let word = expires ? "expired" : "cancelled"
        XCTAssertEqual(self.notes.notes.suffix(2), ["held \(word)", "a \(word)"], stage)
        // The transport had not ended.
        if ["chunk", "end"].contains(stage) {
          XCTAssertEqual(scene.stream?.events.last, expires ? "expire" : "cancel", stage)
        }
        for proceed in self.notes.proceeds { scene.run { proceed() } }
        XCTAssertEqual(scene.caller.events, heard, stage)
        if stage == "head" { XCTAssertNil(scene.stream) }
      }
    }
  }

  func testCancelReachesTheTransportOnce() throws {
    for expires in [false, true] {
      let scene = try WireScene([self.holder("chunk")]).start()
      scene.write("x")
      if expires { scene.expire() } else { scene.cancel() }
      scene.cancel()
      scene.expire()
      XCTAssertEqual(scene.stream?.events, [expires ? "expire" : "cancel"])
    }
    XCTAssertEqual(self.notes.notes, ["held cancelled", "held expired"])
  }

  func testCancelBeforeAnythingHasRun() throws {
    let scene = WireScene([self.notes.watcher("a")])
    try scene.executor.sync {
      let endpoint = try WireHTTPClient(scene.peer, interceptors: [self.notes.watcher("b")]).endpoint(
        for: Origin(scheme: .http, host: "wire.test", port: 80),
        on: nil,
        requiresHTTP2: false
      )
      let request = HTTPStreamRequest(method: .post, target: "/", headers: [:], body: .streamed)
      let stream = endpoint.startStream(request, handler: scene.caller)
      stream.write(ByteBuffer(string: "x"))
      stream.cancel()
    }
    scene.run()
    XCTAssertNil(scene.stream)
    XCTAssertEqual(self.notes.notes, ["b cancelled"])
  }

  func testFailAtEachHook() throws {
    let error = ConnectError(code: .aborted, message: "no")
    let functions: [@Sendable () -> WireFunction] = [
      { WireFunction(requestHeadFunction: { _, proceed in proceed.fail(error) }) },
      { WireFunction(requestChunkFunction: { _, proceed in proceed.fail(error) }) },
      { WireFunction(requestEndFunction: { _, proceed in proceed.fail(error) }) },
      { WireFunction(responseHeadFunction: { _, proceed in proceed.fail(error) }) },
      { WireFunction(responseChunkFunction: { _, proceed in proceed.fail(error) }) },
      { WireFunction(responseEndFunction: { _, proceed in proceed.fail(error) }) },
    ]
    for (index, function) in functions.enumerated() {
      self.notes.notes = []
      let scene = try WireScene([self.notes.watcher("a"), { _ in function() }, self.notes.watcher("c")])
        .start()
      self.drive(scene, fails: false)
      XCTAssertEqual(scene.caller.events.last, "failed aborted", "\(index)")
      XCTAssertEqual(scene.caller.failure?.error.isUnsent, index == 0)
      XCTAssertEqual(scene.caller.failure?.isUnprocessed, false)
      XCTAssertEqual(self.notes.notes.filter { $0.hasSuffix("failure") }, ["a < failure"], "\(index)")
      XCTAssertEqual(self.notes.notes.suffix(2), ["c failed", "a failed"], "\(index)")
      if index == 0 {
        XCTAssertNil(scene.stream)
      } else if index < 5 {
        XCTAssertEqual(scene.stream?.events.last, "cancel", "\(index)")
      }
    }
  }

  func testAReleasedProceedFailsAndNamesTheInterceptor() throws {
    final class Forgetful: WireInterceptor {
      let kind: String

      init(_ kind: String) { self.kind = kind }

      func wireFunction() -> WireFunction {
        switch self.kind {
        case "the request's head": WireFunction(requestHeadFunction: { _, _ in })
        case "a chunk": WireFunction(requestChunkFunction: { _, _ in })
        case "the end": WireFunction(requestEndFunction: { _, _ in })
        case "the response's head": WireFunction(responseHeadFunction: { _, _ in })
        default: WireFunction(failureFunction: { _, _ in })
        }
      }
    }
    for kind in ["the request's head", "a chunk", "the end", "the response's head", "a failure"] {
      let scene = try WireScene([{ _ in Forgetful(kind) }]).start()
      if ["the request's head", "a chunk", "the end"].contains(kind) {
        // What is released is noticed a little later: a failure of the peer could come before it.
        scene.write("x")
        scene.finish()
      } else {
        self.drive(scene, fails: true)
      }
      scene.wait(kind) { scene.caller.isOver }
      XCTAssertEqual(scene.caller.failure?.error.code, .internalError)
      XCTAssertEqual(
        scene.caller.failure?.error.message,
        "the wire interceptor Forgetful has released the proceed of \(kind) without calling it"
      )
    }
  }

  func testTheFailureOfAnInterceptorFurtherOutWins() throws {
    let scene = try WireScene([
      { [notes] _ in
        WireFunction(
          requestChunkFunction: { bytes, proceed in proceed(bytes) },
          responseHeadFunction: { _, proceed in
            notes.keep { proceed.fail(ConnectError(code: .dataLoss, message: "outer")) }
          }
        )
      },
      { _ in
        WireFunction(requestEndFunction: { _, proceed in proceed.fail(ConnectError(code: .aborted)) })
      },
    ]).start()
    scene.respond()
    scene.finish()
    XCTAssertFalse(scene.caller.isOver, "the failure waits behind the head")
    scene.run { self.notes.proceeds[0]() }
    XCTAssertEqual(scene.caller.events, ["failed data_loss"])
    XCTAssertEqual(scene.stream?.events, ["cancel"])
  }

  /// A hook may end the call while it is on the stack.
  func testCancelWithinAHook() throws {
    let box = Holder()
    let scene = try WireScene([
      { [notes] _ in
        WireFunction(
          responseChunkFunction: { bytes, proceed in
            box.scene?.caller.stream?.cancel()
            proceed(bytes)
          },
          endFunction: { notes.add($0.word) }
        )
      }
    ]).start()
    box.scene = scene
    scene.respond()
    scene.receive("x")
    scene.run()
    XCTAssertEqual(scene.caller.events, ["200"])
    XCTAssertEqual(scene.stream?.events, ["cancel"])
    XCTAssertEqual(self.notes.notes, ["cancelled"])
    box.scene = nil
  }

  /// All that an exchange has goes when it ends, also what an interceptor keeps of itself.
  func testEverythingIsReleased() throws {
    final class Keeper: WireInterceptor {
      var held: Proceed<WireHeadVerb<HTTPStreamRequest>>?
      var stream: (any HTTPStream)?

      func wireFunction() -> WireFunction {
        WireFunction(requestHeadFunction: { _, proceed in self.held = proceed })
      }
    }
    let weak = WeakBox()
    do {
      let scene = try WireScene([
        { _ in
          let keeper = Keeper()
          weak.value = keeper
          return keeper
        }
      ]).start()
      XCTAssertNotNil(weak.value)
      scene.cancel()
    }
    XCTAssertNil(weak.value)
  }
}

private final class Holder: @unchecked Sendable {
  var scene: WireScene?
}

private final class WeakBox: @unchecked Sendable {
  weak var value: AnyObject?
}
