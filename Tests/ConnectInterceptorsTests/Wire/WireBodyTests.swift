import Connect
import ConnectInterceptors
import NIOCore
import XCTest

/// Complete and streamed bodies, and what requests must satisfy.
final class WireBodyTests: XCTestCase {
  private let notes = WireNotes()

  func testACompleteBodyIsInTheHead() throws {
    let scene = try WireScene([
      self.notes.watcher("a"),
      { _ in
        WireFunction(requestHeadFunction: { head, proceed in
          var head = head
          head.body = .complete(ByteBuffer(string: "longer"))
          proceed(head)
        })
      },
    ]).start { $0.body = .complete(ByteBuffer(string: "x")) }
    XCTAssertEqual(self.notes.notes, ["a > head"])
    guard case .complete(let body)? = scene.stream?.request.body else { return XCTFail("streamed") }
    XCTAssertEqual(String(buffer: body), "longer")
    XCTAssertEqual(scene.stream?.events, [])
  }

  func testAGatheredBody() throws {
    let scene = try WireScene([{ _ in Gatherer() }, self.notes.watcher("b")]).start()
    scene.write("one")
    XCTAssertEqual(scene.caller.events, ["writable"], "what was dropped is accepted")
    scene.write("two")
    XCTAssertNil(scene.stream)
    scene.finish()
    guard case .complete(let body)? = scene.stream?.request.body else { return XCTFail("streamed") }
    XCTAssertEqual(String(buffer: body), "onetwo")
    XCTAssertEqual(scene.stream?.events, [], "a complete body has no end of its own")
    XCTAssertEqual(self.notes.notes, ["b > head"])
    scene.respond()
    scene.end()
    XCTAssertEqual(scene.caller.events.suffix(2), ["200", "end"])
  }

  func testACompleteBodyThatBecomesStreamed() throws {
    let scene = try WireScene([
      { [notes] _ in
        WireFunction(
          requestHeadFunction: { head, proceed in
            var head = head
            head.body = .streamed
            proceed(head)
          },
          requestChunkFunction: { bytes, proceed in
            notes.add(String(buffer: bytes))
            proceed(bytes)
          },
          requestEndFunction: { _, proceed in proceed(["t": ["1"]]) }
        )
      },
      self.notes.watcher("b"),
    ]).start { $0.body = .complete(ByteBuffer(string: "x")) }
    XCTAssertEqual(self.notes.notes, ["b > head", "x", "b > x", "b > end"])
    XCTAssertEqual(scene.stream?.events, ["write x", "finish t=1"])
    // And back again.
    let back = try WireScene([
      { _ in
        WireFunction(requestHeadFunction: { head, proceed in
          var head = head
          head.body = .streamed
          proceed(head)
        })
      },
      { _ in Gatherer() },
    ]).start { $0.body = .complete(ByteBuffer(string: "x")) }
    guard case .complete(let body)? = back.stream?.request.body else { return XCTFail("streamed") }
    XCTAssertEqual(String(buffer: body), "x")
  }

  func testAChunkBehindACompleteBodyFails() throws {
    let scene = try WireScene([
      { _ in
        WireFunction(requestHeadFunction: { head, proceed in
          var head = head
          head.body = .complete(ByteBuffer(string: "whole"))
          proceed(head)
        })
      }
    ]).start()
    scene.write("x")
    XCTAssertEqual(scene.stream?.events, ["cancel"])
    XCTAssertEqual(scene.caller.failure?.error.code, .internalError)
    XCTAssertEqual(
      scene.caller.failure?.error.message,
      "the wire interceptor WireFunction passed on a chunk behind a complete body"
    )
  }

  func testTrailersBehindACompleteBodyFail() throws {
    let scene = try WireScene([{ _ in Gatherer() }]).start()
    scene.finish(["t": ["1"]])
    XCTAssertEqual(
      scene.caller.failure?.error.message,
      "the wire interceptor Gatherer passed on trailers behind a complete body"
    )
  }

  func testWhatMustNotGoOnTheWire() throws {
    let changes: [(inout HTTPStreamRequest) -> Void] = [
      { $0.headers["x"] = ["a\r\nb: c"] },
      { $0.headers["x"] = ["a\0"] },
      { $0.headers["x"] = [" a"] },
      { $0.headers["x y"] = ["a"] },
      { $0.headers[""] = ["a"] },
      { $0.headers[":path"] = ["/"] },
      { $0.headers["content-length"] = ["1"] },
      { $0.headers["Transfer-Encoding"] = ["chunked"] },
      { $0.headers["host"] = ["other"] },
      { $0.target = "/a b" },
      { $0.target = "/a HTTP/1.1\r\nx: y" },
      { $0.target = "" },
      { $0.method = .get },
    ]
    for (index, change) in changes.enumerated() {
      let change = UncheckedBox(change)
      let scene = try WireScene([
        self.notes.watcher("a"),
        { _ in
          WireFunction(requestHeadFunction: { head, proceed in
            var head = head
            change.value(&head)
            proceed(head)
          })
        },
      ]).start()
      XCTAssertNil(scene.stream, "\(index)")
      XCTAssertEqual(scene.caller.events, ["failed internal"], "\(index)")
      XCTAssertEqual(scene.caller.failure?.error.isUnsent, true)
      XCTAssertEqual(self.notes.notes.suffix(2), ["a < failure", "a failed"], "\(index)")
    }
    let scene = try WireScene([
      { _ in WireFunction(requestEndFunction: { _, proceed in proceed(["t": ["a\r\nb"]]) }) }
    ]).start()
    scene.finish()
    XCTAssertEqual(scene.stream?.events, ["cancel"])
    XCTAssertEqual(scene.caller.events, ["failed internal"])
  }

  func testAGETWithoutBodyPasses() throws {
    let scene = try WireScene([
      { _ in
        WireFunction(requestHeadFunction: { head, proceed in
          var head = head
          head.headers["x"] = ["ü"]
          head.target += "&more=1"
          proceed(head)
        })
      }
    ]).start {
      $0.method = .get
      $0.target = "/s/m?message=a"
      $0.body = .complete(ByteBuffer())
    }
    XCTAssertEqual(scene.stream?.request.target, "/s/m?message=a&more=1")
    XCTAssertEqual(scene.stream?.request.method, .get)
  }
}

/// Gathers the body, and sends it with the head.
private final class Gatherer: WireInterceptor {
  private var head: (HTTPStreamRequest, Proceed<WireHeadVerb<HTTPStreamRequest>>)?
  private var body = ByteBuffer()

  func wireFunction() -> WireFunction {
    WireFunction(
      requestHeadFunction: { head, proceed in self.head = (head, proceed) },
      requestChunkFunction: { bytes, proceed in
        self.body.writeImmutableBuffer(bytes)
        proceed.drop()
      },
      requestEndFunction: { trailers, proceed in
        if let (head, proceed) = self.head {
          var whole = head
          whole.body = .complete(self.body)
          proceed(whole)
        }
        proceed(trailers)
      }
    )
  }
}

/// What a test uses on one thread at a time.
struct UncheckedBox<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
