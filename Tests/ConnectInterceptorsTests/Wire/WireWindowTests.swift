import Connect
import ConnectInterceptors
import NIOCore
import XCTest

/// What waits is bounded, and pushes back in both directions.
final class WireWindowTests: XCTestCase {
  private let notes = WireNotes()

  private func responses(_ hook: @escaping (ByteBuffer, Proceed<WireChunkVerb>) -> Void)
    -> WireInterceptorFactory
  {
    let hook = UncheckedBox(hook)
    return { _ in WireFunction(responseChunkFunction: hook.value) }
  }

  // MARK: The response

  func testConsumedBytesAreThoseOfTheTransport() throws {
    let scene = try WireScene([
      self.responses { bytes, proceed in
        switch bytes.readableBytes {
        case 1: proceed.drop()
        case 2: proceed(ByteBuffer(string: "longer than two"))
        case 3: proceed(ByteBuffer(string: "s"))
        case 4: proceed.send([ByteBuffer(string: "ab"), ByteBuffer(string: "cdef")])
        default: proceed(bytes)
        }
      }
    ]).start()
    scene.respond()
    scene.receive("1")
    XCTAssertEqual(scene.stream?.consumedBytes, 1, "dropped")
    scene.receive("22")
    scene.consume(14)
    scene.consume(1)
    XCTAssertEqual(scene.stream?.consumedBytes, 3, "longer")
    scene.receive("333")
    XCTAssertEqual(scene.stream?.consumedBytes, 3)
    scene.consume(1)
    XCTAssertEqual(scene.stream?.consumedBytes, 6, "shorter")
    scene.receive("4444")
    scene.consume(5)
    XCTAssertLessThan(scene.stream?.consumedBytes ?? .max, 10)
    scene.consume(1)
    XCTAssertEqual(scene.stream?.consumedBytes, 10, "split")
    scene.receive("55555")
    scene.consume(2)
    XCTAssertEqual(scene.stream?.consumedBytes, 12, "unchanged")
    scene.consume(1000)
    XCTAssertEqual(scene.stream?.consumedBytes, 15, "more than it has")
  }

  func testHeldBytesAreNotConsumed() throws {
    let scene = try WireScene([self.responses { [notes] bytes, proceed in notes.keep { proceed(bytes) } }])
      .start()
    scene.respond()
    scene.receive("1", "22")
    scene.consume(100)
    XCTAssertEqual(scene.stream?.consumedBytes, 0)
    scene.run { self.notes.proceeds[0]() }
    scene.consume(1)
    XCTAssertEqual(scene.stream?.consumedBytes, 1)
  }

  /// What a hook makes of a chunk goes out as the call consumes, and meanwhile no hook is called.
  func testABombGoesOutAsTheCallConsumes() throws {
    let limits = WireLimits(waitingBytes: 1000, waitingChunks: 4, addedBytes: 100_000)
    let scene = try WireScene(
      [
        self.responses { [notes] bytes, proceed in
          notes.add("asked")
          proceed.send(Array(repeating: ByteBuffer(repeating: 0, count: 100), count: 1000))
        }
      ],
      limits: limits
    ).start()
    scene.respond()
    for _ in 0..<50 { scene.receive("x") }
    XCTAssertLessThanOrEqual(self.notes.notes.count, 2)
    XCTAssertLessThanOrEqual(scene.caller.body.readableBytes, 1100)
    XCTAssertEqual(scene.stream?.consumedBytes, 0)
    var rounds = 0
    while scene.stream?.consumedBytes != 50, rounds < 100_000 {
      rounds += 1
      let before = scene.caller.body.readableBytes
      scene.consume(1000)
      XCTAssertLessThanOrEqual(scene.caller.body.readableBytes - before, 1100)
    }
    // Chunks that waited in front of the hook were joined.
    XCTAssertLessThan(self.notes.notes.count, 10)
    XCTAssertEqual(scene.caller.body.readableBytes, self.notes.notes.count * 100_000)
  }

  func testTooMuchAtOnceFails() throws {
    for verb in 0..<3 {
      let scene = try WireScene(
        [
          self.notes.watcher("a"),
          self.responses { bytes, proceed in
            switch verb {
            case 0: proceed(ByteBuffer(repeating: 0, count: 102))
            case 1: proceed.send(Array(repeating: ByteBuffer(repeating: 0, count: 51), count: 2))
            default: proceed.send(Array(repeating: ByteBuffer(string: "."), count: 1025))
            }
          },
        ],
        limits: WireLimits(addedBytes: verb == 2 ? 10_000 : 100)
      ).start()
      scene.respond()
      scene.receive("x")
      XCTAssertEqual(scene.caller.events.last, "failed resource_exhausted")
      XCTAssertEqual(scene.stream?.events, ["cancel"])
      XCTAssertTrue(scene.caller.failure?.error.message?.contains("addedBytes") == true)
    }
  }

  func testTheLargestLimits() throws {
    let limits = WireLimits(waitingBytes: .max, waitingChunks: .max, addedBytes: .max)
    let scene = try WireScene([self.notes.watcher("a")], limits: limits).start()
    scene.write("x")
    scene.respond()
    scene.receive("y")
    XCTAssertEqual(scene.stream?.events, ["write x"])
    XCTAssertEqual(scene.caller.events, ["200", "chunk y"])
    let least = WireLimits(waitingBytes: .min, waitingChunks: .min, addedBytes: .min)
    XCTAssertEqual(least, WireLimits(waitingBytes: 1, waitingChunks: 1, addedBytes: 0))
  }

  func testAsManyBytesAsReceivedAlwaysPass() throws {
    let limits = WireLimits(waitingBytes: 1, waitingChunks: 1, addedBytes: 0)
    let scene = try WireScene([self.notes.watcher("a"), self.notes.watcher("b")], limits: limits).start()
    let text = String(repeating: "x", count: 100_000)
    scene.write(text)
    scene.respond()
    scene.receive(text)
    XCTAssertEqual(scene.stream?.body.readableBytes, 100_000)
    XCTAssertEqual(scene.caller.body.readableBytes, 100_000)
  }

  /// Chunks that wait in front of a hook that holds are joined, so that a peer cannot make many of them.
  func testWaitingChunksAreJoined() throws {
    let scene = try WireScene([
      self.responses { [notes] bytes, proceed in
        notes.add("\(bytes.readableBytes)")
        notes.keep { proceed(bytes) }
      }
    ]).start()
    scene.respond()
    for index in 0..<10_000 { scene.receive("\(index % 10)") }
    XCTAssertEqual(self.notes.notes, Array(repeating: "1", count: 16))
    var index = 0
    while index < self.notes.proceeds.count {
      scene.run { self.notes.proceeds[index]() }
      index += 1
    }
    XCTAssertEqual(index, 32)
    XCTAssertEqual(String(buffer: scene.caller.body), String(repeating: "0123456789", count: 1000))
    scene.consume(10_000)
    XCTAssertEqual(scene.stream?.consumedBytes, 10_000)
  }

  // MARK: The request

  func testTheCallIsToldOnceTheTransportHasSent() throws {
    let scene = try WireScene([self.notes.watcher("a")]).start()
    scene.write("x")
    XCTAssertEqual(scene.caller.events, [])
    scene.becomeWritable()
    XCTAssertEqual(scene.caller.events, ["writable"])
    scene.becomeWritable()
    XCTAssertEqual(scene.caller.events, ["writable"])
  }

  func testAHookThatHoldsPushesBack() throws {
    let scene = try WireScene(
      [
        { [notes] _ in
          WireFunction(requestChunkFunction: { bytes, proceed in notes.keep { proceed(bytes) } })
        }
      ],
      limits: WireLimits(waitingBytes: 10)
    ).start()
    scene.write("123456")
    XCTAssertEqual(scene.caller.events, ["writable"], "there is room for more")
    scene.write("123456")
    XCTAssertEqual(scene.caller.events.count, 2)
    scene.write("x")
    XCTAssertEqual(scene.caller.events.count, 2, "the hook has more than ten bytes")
    XCTAssertEqual(self.notes.proceeds.count, 2)
    scene.run { self.notes.proceeds[0]() }
    XCTAssertEqual(self.notes.proceeds.count, 3)
    XCTAssertEqual(scene.caller.events.count, 2, "the transport has to send it")
    scene.becomeWritable()
    XCTAssertEqual(scene.caller.events.count, 3)
  }

  func testWhatIsAddedWaitsForTheTransport() throws {
    let scene = try WireScene(
      [
        { _ in
          WireFunction(requestChunkFunction: { _, proceed in
            proceed.send(Array(repeating: ByteBuffer(repeating: 0, count: 10), count: 100))
          })
        }
      ],
      limits: WireLimits(waitingBytes: 50)
    ).start()
    scene.write("x")
    for round in 1...20 {
      XCTAssertEqual(scene.stream?.body.readableBytes, round * 50)
      XCTAssertEqual(scene.caller.events, [])
      scene.becomeWritable()
    }
    XCTAssertEqual(scene.caller.events, ["writable"])
  }

  func testAnEmptyWriteIsAccepted() throws {
    let scene = try WireScene([self.notes.watcher("a")]).start()
    scene.write("")
    XCTAssertEqual(scene.caller.events, ["writable"])
    XCTAssertEqual(self.notes.notes, ["a > head"])
  }
}
