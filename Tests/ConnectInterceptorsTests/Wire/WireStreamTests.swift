import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import XCTest

/// What passes through wire interceptors, and in which order.
final class WireStreamTests: XCTestCase {
  private let notes = WireNotes()

  func testOrderOfInterceptors() throws {
    let scene = try WireScene([self.notes.watcher("a"), self.notes.watcher("b")]).start()
    scene.write("x")
    scene.finish()
    scene.run { scene.stream?.handler?.streamDidStart(on: .init(version: .http2, isReused: false)) }
    scene.respond()
    scene.receive("y")
    scene.end(["t": ["1"]])
    XCTAssertEqual(
      self.notes.notes,
      [
        "a > head", "b > head", "a > x", "b > x", "a > end", "b > end", "b = connection", "a = connection",
        "b < head", "a < head", "b < y", "a < y", "b < end", "a < end", "b completed", "a completed",
      ]
    )
    XCTAssertEqual(scene.stream?.events, ["write x", "finish"])
    XCTAssertEqual(scene.caller.events.filter { $0 != "writable" }, ["start", "200", "chunk y", "end t=1"])
  }

  func testEmptyInterceptorsAreNotThere() throws {
    let scene = try WireScene([{ _ in WireFunction() }, { _ in WireFunction() }]).start()
    XCTAssertTrue(scene.stream?.handler === scene.caller)
    XCTAssertTrue(try WireHTTPClient(scene.peer, interceptors: []).endpoint(for: .test) === scene.peer)
  }

  func testFactsOfTheTransportPass() throws {
    let peer = WirePeer(VirtualExecutor())
    let watcher = self.notes.watcher("a")
    let endpoint = try WireHTTPClient(peer, interceptors: [watcher]).endpoint(for: .test)
    XCTAssertTrue(endpoint.executor === peer.executor)
    XCTAssertTrue(endpoint.underlying === peer)
    XCTAssertEqual(endpoint.maximumHeaderListSize, 1234)
    XCTAssertTrue(WireHTTPClient(peer, interceptors: [watcher]).authenticatesClient)
    XCTAssertFalse(WireHTTPClient(peer, interceptors: []).authenticatesClient)
    XCTAssertFalse(
      WireHTTPClient(peer, interceptors: [watcher], authenticatesClient: false).authenticatesClient
    )
  }

  func testAHeldHeadHoldsWhatFollows() throws {
    let scene = try WireScene([
      { [notes] _ in
        WireFunction(requestHeadFunction: { head, proceed in notes.keep { proceed(head) } })
      }
    ]).start()
    scene.write("x")
    scene.finish()
    XCTAssertNil(scene.stream)
    scene.run { self.notes.proceeds[0]() }
    XCTAssertEqual(scene.stream?.events, ["write x", "finish"])
  }

  func testOrderIsKeptWhateverTheOrderOfProceeds() throws {
    let scene = try WireScene([
      { [notes] _ in
        WireFunction(
          responseHeadFunction: { head, proceed in notes.keep { proceed(head) } },
          responseChunkFunction: { bytes, proceed in notes.keep { proceed(bytes) } },
          responseEndFunction: { trailers, proceed in notes.keep { proceed(trailers) } }
        )
      }
    ]).start()
    scene.respond()
    scene.receive("1", "2")
    scene.end()
    for index in [3, 2, 0, 1] {
      XCTAssertFalse(scene.caller.isOver)
      scene.run { self.notes.proceeds[index]() }
    }
    XCTAssertEqual(scene.caller.events, ["200", "chunk 1", "chunk 2", "end"])
  }

  func testChangesAddsAndDrops() throws {
    let scene = try WireScene([
      { _ in
        WireFunction(
          requestHeadFunction: { head, proceed in
            var head = head
            head.headers["x-b"] = ["2"]
            head.target = "/other"
            proceed(head)
          },
          requestChunkFunction: { bytes, proceed in
            proceed.send([bytes, ByteBuffer(), ByteBuffer(string: "+")])
          },
          requestEndFunction: { _, proceed in
            proceed(["t": ["2"]], after: [ByteBuffer(string: "last")])
          },
          responseHeadFunction: { head, proceed in
            proceed(HTTPResponseHead(status: head.status + 1, headers: head.headers))
          },
          responseChunkFunction: { bytes, proceed in
            if String(buffer: bytes) == "drop" { proceed.drop() } else { proceed(ByteBuffer(string: "new")) }
          },
          responseEndFunction: { trailers, proceed in
            proceed(["t": ["3"]], after: [ByteBuffer(string: "more")])
          }
        )
      }
    ]).start()
    scene.write("x")
    scene.finish()
    scene.respond()
    scene.receive("drop", "old")
    scene.end()
    XCTAssertEqual(scene.stream?.request.headers, ["x-a": ["1"], "x-b": ["2"]])
    XCTAssertEqual(scene.stream?.request.target, "/other")
    XCTAssertEqual(scene.stream?.events, ["write x", "write +", "write last", "finish t=2"])
    XCTAssertEqual(scene.caller.events.suffix(4), ["201", "chunk new", "chunk more", "end t=3"])
  }

  func testProceedOnAnotherThreadAndTwice() throws {
    let scene = try WireScene([
      { _ in
        WireFunction(requestChunkFunction: { bytes, proceed in
          DispatchQueue.global().async {
            proceed(bytes)
            proceed.fail(ConnectError(code: .aborted))
            proceed(bytes)
          }
        })
      }
    ]).start()
    scene.write("x")
    scene.wait("written") { scene.stream?.events.isEmpty == false }
    scene.run()
    XCTAssertEqual(scene.stream?.events, ["write x"])
    XCTAssertFalse(scene.caller.isOver)
  }

  func testATaskOfAHookRunsOnTheExecutor() throws {
    let scene = try WireScene([
      { [notes] exchange in
        WireFunction(requestHeadFunction: { head, proceed in
          proceed.task {
            await Task.yield()
            notes.add("\(exchange.executor.isCurrent)")
            proceed(head)
          }
        })
      }
    ]).start()
    scene.wait("started") { scene.stream != nil }
    XCTAssertEqual(self.notes.notes, ["true"])
  }

  func testPackageFactsSurviveNewValues() throws {
    let scene = try WireScene([
      { _ in
        WireFunction(
          requestHeadFunction: { head, proceed in
            var new = HTTPStreamRequest(
              method: head.method,
              target: head.target,
              headers: head.headers,
              body: head.body
            )
            new.hasNoSideEffects = head.hasNoSideEffects
            proceed(new)
          },
          failureFunction: { failure, proceed in
            proceed(HTTPStreamFailure(error: failure.error, isUnprocessed: failure.isUnprocessed))
          }
        )
      }
    ]).start { request in
      request.hasOtherProtocols = true
      request.hasNoSideEffects = true
      request.context.requestID = "r"
      request.authority = "api.example"
    }
    XCTAssertEqual(scene.stream?.request.authority, "api.example")
    XCTAssertEqual(scene.stream?.request.hasOtherProtocols, true)
    XCTAssertEqual(scene.stream?.request.hasNoSideEffects, true)
    XCTAssertEqual(scene.stream?.request.context.requestID, "r")
    var failure = HTTPStreamFailure(error: ConnectError(code: .unavailable), isUnprocessed: true)
    failure.keepsTransparentRetry = true
    failure.isVersionMismatch = true
    scene.fail(failure)
    XCTAssertEqual(scene.caller.failure?.isUnprocessed, true)
    XCTAssertEqual(scene.caller.failure?.keepsTransparentRetry, true)
    XCTAssertEqual(scene.caller.failure?.isVersionMismatch, true)
  }

  func testAFailureCanBeChanged() throws {
    let scene = try WireScene([
      { _ in
        WireFunction(failureFunction: { failure, proceed in
          var failure = failure
          failure.error = ConnectError(code: .dataLoss, message: "changed")
          proceed(failure)
        })
      }
    ]).start()
    scene.respond()
    scene.receive("x")
    scene.fail(HTTPStreamFailure(error: ConnectError(code: .unavailable)))
    XCTAssertEqual(scene.caller.events, ["200", "chunk x", "failed data_loss"])
  }

  func testANewInstanceForEachExchange() throws {
    let scene = WireScene([
      { [notes] _ in
        notes.add("made")
        return WireFunction(endFunction: { _ in })
      }
    ])
    try scene.start()
    try scene.start()
    XCTAssertEqual(self.notes.notes.count, 2)
  }

  func testAnEarlyResponseEndsTheRequest() throws {
    let scene = try WireScene([
      { [notes] _ in
        WireFunction(
          requestChunkFunction: { bytes, proceed in notes.keep { proceed(bytes) } },
          endFunction: { notes.add($0.word) }
        )
      }
    ]).start()
    scene.write("x")
    scene.respond()
    scene.end()
    XCTAssertEqual(self.notes.notes, ["completed"])
    scene.run { self.notes.proceeds[0]() }
    XCTAssertEqual(scene.stream?.events, [])
  }
}

extension WireHTTPClient {
  fileprivate func endpoint(for origin: Origin) throws -> any HTTPEndpoint {
    try self.endpoint(for: origin, on: nil, requiresHTTP2: false)
  }
}

extension Origin {
  fileprivate static var test: Origin { Origin(scheme: .http, host: "wire.test", port: 80) }
}
