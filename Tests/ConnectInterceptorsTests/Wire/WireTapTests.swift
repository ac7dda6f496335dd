import Connect
import ConnectInterceptors
import ConnectTesting
import Foundation
import NIOCore
import Synchronization
import XCTest

/// What a tap shows, what it hides, and how it is bounded.
final class WireTapTests: XCTestCase {
  private final class Text: Sendable {
    private let lines = Mutex("")

    var value: String { self.lines.withLock { $0 } }

    func add(_ lines: String) { self.lines.withLock { $0 += lines } }
  }

  private let text = Text()

  private func lines(_ options: WireTap.Options = .defaults) -> WireTap {
    WireTap(options, lines: { [text] lines in text.add(lines) })
  }

  private func scene(_ tap: WireTap) -> WireScene {
    WireScene([{ exchange in WireTapInterceptor(tap, exchange) }])
  }

  func testLines() async throws {
    let tap = self.lines()
    let scene = try self.scene(tap).start {
      $0.headers["Authorization"] = ["Bearer s3cret"]
      $0.headers["x-mine"] = ["s3cret"]
      $0.headers["x-odd"] = ["a\u{202e}b"]
      $0.context[SensitiveHeaders.self] = ["x-mine"]
    }
    scene.write("hello")
    scene.run { scene.caller.write(ByteBuffer(bytes: Array(0..<20))) }
    scene.finish()
    scene.executor.advance(by: .microseconds(1500))
    scene.run {
      let connection = HTTPConnectionInfo(version: .http2, isReused: true, remoteAddress: "10.0.0.1:80")
      scene.stream?.handler?.streamDidStart(on: connection)
    }
    scene.run {
      scene.stream?.handler?.streamDidReceive(
        HTTPResponseHead(status: 200, headers: ["set-cookie": ["s3cret"]])
      )
    }
    scene.receive("world")
    scene.end(["grpc-status": ["0"]])
    await tap.flush()
    XCTAssertEqual(
      self.text.value,
      """
      #1 0.000 ms > POST http://wire.test/s/m
      #1 0.000 ms > x-a: 1
      #1 0.000 ms > authorization: <redacted>
      #1 0.000 ms > x-mine: <redacted>
      #1 0.000 ms > x-odd: a?b
      #1 0.000 ms > 5 bytes
          hello
      #1 0.000 ms > 20 bytes
          00000000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  |................|
          00000010  10 11 12 13                                      |....|
      #1 0.000 ms > end of request
      #1 1.500 ms = HTTP/2 to 10.0.0.1:80, reused
      #1 1.500 ms < 200
      #1 1.500 ms < set-cookie: <redacted>
      #1 1.500 ms < 5 bytes
          world
      #1 1.500 ms < end of response
      #1 1.500 ms < grpc-status: 0

      """
    )
  }

  func testEnds() async throws {
    let tap = self.lines()
    let failed = try self.scene(tap).start { $0.body = .complete(ByteBuffer(string: "whole")) }
    failed.fail(HTTPStreamFailure(error: ConnectError(code: .unavailable, message: "gone\nfar")))
    try self.scene(tap).start().cancel()
    try self.scene(tap).start().expire()
    await tap.flush()
    let text = self.text.value
    for part in [
      "    whole\n#1 0.000 ms > end of request\n", "#1 0.000 ms < failed: unavailable, gone?far\n",
      "#2 0.000 ms = given up\n", "#3 0.000 ms = given up, the deadline has passed\n",
    ] { XCTAssertTrue(text.contains(part), "\(part) is not in\n\(text)") }
  }

  func testBodiesAreCut() async throws {
    let tap = self.lines(.init(bodyBytes: 6))
    let scene = try self.scene(tap).start()
    scene.write("hello")
    scene.write("world")
    scene.write("again")
    await tap.flush()
    let text = self.text.value
    XCTAssertTrue(text.contains("> 5 bytes, 4 left out\n    w\n"), text)
    XCTAssertTrue(text.hasSuffix("> 5 bytes, 5 left out\n"), text)
  }

  /// Calls do not wait for a sink that hangs; records are dropped, and counted.
  func testASlowSinkLosesRecords() async throws {
    let gate = WireGate()
    let records = Observed<[WireRecord]>([])
    let tap = WireTap(
      .init(waitingRecords: 10),
      records: { record in
        await gate.wait()
        records.update { $0.append(record) }
      }
    )
    let scene = try self.scene(tap).start()
    scene.respond()
    for index in 0..<1000 {
      scene.receive("x\(index)")
      scene.consume(10)
    }
    scene.end()
    XCTAssertEqual(scene.caller.events.last, "end")
    XCTAssertGreaterThan(tap.droppedRecords, 980)
    gate.open()
    await tap.flush()
    let seen = records.value
    XCTAssertLessThanOrEqual(seen.count, 13)
    let counts = seen.map { if case .dropped(let count) = $0.event { count } else { 0 } }
    XCTAssertEqual(counts.reduce(0, +), tap.droppedRecords)
  }

  func testWaitingBytesAreBounded() async throws {
    let gate = WireGate()
    let tap = WireTap(
      .init(bodyBytes: .max, waitingBytes: 10_000),
      records: { _ in await gate.wait() }
    )
    let scene = try self.scene(tap).start()
    scene.respond()
    for _ in 0..<100 {
      scene.receive(String(repeating: "x", count: 1000))
      scene.consume(1000)
    }
    XCTAssertGreaterThan(tap.droppedRecords, 90)
    gate.open()
    await tap.flush()
  }

  func testAFile() async throws {
    let pipe = Pipe()
    let tap = WireTap(writingTo: pipe.fileHandleForWriting.fileDescriptor)
    let scene = try self.scene(tap).start()
    scene.cancel()
    await tap.flush()
    try pipe.fileHandleForWriting.close()
    let text = String(decoding: try XCTUnwrap(try pipe.fileHandleForReading.readToEnd()), as: UTF8.self)
    XCTAssertEqual(
      text,
      "#1 0.000 ms > POST http://wire.test/s/m\n#1 0.000 ms > x-a: 1\n#1 0.000 ms = given up\n"
    )
    // Nothing to write to.
    let closed = WireTap(writingTo: -1)
    try self.scene(closed).start().cancel()
    await closed.flush()
  }
}
