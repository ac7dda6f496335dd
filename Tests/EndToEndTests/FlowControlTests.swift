internal import Connect
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Nobody gets more than he asked for: what is not read stays with the server, what is not taken stays with
/// the caller, and memory is bounded.
final class FlowControlTests: XCTestCase {
  private static let floodBytes = 500 << 20
  /// The client's window (1 MiB for a stream of HTTP/2, the same and a read for HTTP/1.1), the buffers of two
  /// sockets (Linux lets them grow to 6 MiB and 4 MiB), and what the server's own buffers hold.
  private static let writtenLimit = 16 << 20
  /// The same and a margin.
  private static let memoryLimit = 48 << 20

  private var flood: Connect_Test_V1_FloodRequest { .with { $0.totalBytes = UInt64(Self.floodBytes) } }

  // MARK: Receiving

  /// Waits until the server can write no more of request number `index`, and returns how much that was.
  private func waitForStandstill(_ server: LoopbackServer, index: Int = 0) async throws -> Int {
    var last = -1
    var sightings = 0
    // Half a second without a byte.
    try await eventually("the server goes on writing") {
      let requests = server.journal.snapshot.requests(to: TestMethods.flood.path)
      let written = requests.count > index ? requests[index].bytesWritten : -1
      sightings = written == last && written > 0 ? sightings + 1 : 0
      last = written
      return sightings > 200
    }
    return last
  }

  func testFloodThatIsNotRead() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let before = try Memory.resident()
        let stream = embedded.client.serverStream(TestMethods.flood, self.flood)
        let written = try await self.waitForStandstill(embedded.server)
        let after = try Memory.resident()
        print(
          "\(version.rawValue): a flood that is not read wrote \(Memory.mebibytes(written)), took"
            + " \(Memory.mebibytes(after - before))"
        )
        XCTAssertGreaterThan(written, 0, version.rawValue)
        XCTAssertLessThan(written, Self.writtenLimit, version.rawValue)
        XCTAssertLessThan(after - before, Self.memoryLimit, version.rawValue)
        XCTAssertNil(embedded.server.requests[0].outcome, version.rawValue)

        stream.cancel()
        let record = try await embedded.server.endedRequest(to: TestMethods.flood.path)
        XCTAssertEqual(record.outcome, EmbeddedServer.givenUp(version), version.rawValue)
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .canceled, version.rawValue)
        XCTAssertEqual(outcome.messages.count, 0, version.rawValue)
      }
    }
  }

  /// The form with callbacks, with a demand of three: the headers and two messages.
  func testFloodWithLimitedDemand() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let results = Recorder<StreamResult<Connect_Test_V1_FloodResponse>>()
        let handle = embedded.client.serverStream(TestMethods.flood, self.flood, demand: 3) {
          results.record($0)
        }
        let written = try await self.waitForStandstill(embedded.server)
        XCTAssertLessThan(written, Self.writtenLimit, version.rawValue)
        XCTAssertEqual(results.values.count, 3, version.rawValue)
        handle.request(2)
        try await results.wait(for: 5)
        handle.cancel()
        let record = try await embedded.server.endedRequest(to: TestMethods.flood.path)
        XCTAssertEqual(record.outcome, EmbeddedServer.givenUp(version), version.rawValue)
      }
    }
  }

  func testFloodThatIsReadToTheEnd() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, configure: { $1.timeout = .seconds(300) }) { embedded in
        let before = try Memory.resident()
        let start = ContinuousClock.now
        var peak = before
        var received = 0
        var isInOrder = true
        for try await message in embedded.client.serverStream(TestMethods.flood, self.flood).messages {
          isInOrder = isInOrder && message.offset == UInt64(received)
          received += message.data.count
          if received & 0xff_ffff == 0 { peak = max(peak, try Memory.resident()) }
        }
        peak = max(peak, try Memory.resident())
        print(
          "\(version.rawValue): 500 MiB in \(ContinuousClock.now - start), took"
            + " \(Memory.mebibytes(peak - before))"
        )
        XCTAssertEqual(received, Self.floodBytes, version.rawValue)
        XCTAssertTrue(isInOrder, version.rawValue)
        XCTAssertLessThan(peak - before, Self.memoryLimit, version.rawValue)
        let record = try await embedded.server.endedRequest(to: TestMethods.flood.path)
        XCTAssertEqual(record.outcome, .completed, version.rawValue)
      }
    }
  }

  /// Stopping and going on loses nothing.
  func testFloodThatIsReadLate() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let total = 32 << 20
        let stream = embedded.client.serverStream(TestMethods.flood, .with { $0.totalBytes = UInt64(total) })
        let written = try await self.waitForStandstill(embedded.server)
        XCTAssertLessThan(written, Self.writtenLimit, version.rawValue)
        var received = 0
        for try await message in stream.messages { received += message.data.count }
        XCTAssertEqual(received, total, version.rawValue)
      }
    }
  }

  /// Streams that are not read do not hold up the others on their connection, although their windows, 1 MiB each,
  /// are more than the connection's 16 MiB.
  func testOtherCallsWhileStreamsAreNotRead() async throws {
    try await EmbeddedServer.run(.http2) { embedded in
      var streams: [ServerStream<Connect_Test_V1_FloodRequest, Connect_Test_V1_FloodResponse>] = []
      for index in 0..<24 {
        streams.append(
          embedded.client.serverStream(
            TestMethods.flood,
            self.flood,
            options: CallOptions(timeout: .seconds(600))
          )
        )
        if index == 0 || index == 23 { _ = try await self.waitForStandstill(embedded.server, index: index) }
        for number in 0..<20 {
          let response = await embedded.client.unary(
            TestMethods.echo,
            .with {
              $0.payload.small = Int32(number)
              $0.instruction.responseBytes = 10_000
            }
          )
          guard response.message?.payload.small == Int32(number) else {
            return XCTFail("\(index + 1) streams are not read, and a call fails: \(response)")
          }
        }
      }
      let floods = embedded.server.journal.snapshot.requests(to: TestMethods.flood.path)
      XCTAssertTrue(floods.allSatisfy { $0.outcome == nil })
      XCTAssertEqual(embedded.server.journal.snapshot.acceptedConnections, 1)
      for stream in streams { stream.cancel() }
    }
  }

  /// A third-party server is held back as well: it goes on where it stopped.
  func testHypercornIsHeldBack() async throws {
    for setting in Setting.plain where setting.server == .hypercorn {
      try await setting.withClient { client in
        let total = 24 << 20
        let before = try Memory.resident()
        let stream = client.serverStream(TestMethods.flood, .with { $0.totalBytes = UInt64(total) })
        var messages = stream.messages.makeAsyncIterator()
        var received = try await messages.next()?.data.count ?? 0
        // Meanwhile the server could send all of it.
        for number in 0..<100 {
          let response = await client.unary(
            TestMethods.echo,
            .with {
              $0.payload.small = Int32(number)
            }
          )
          XCTAssertEqual(response.message?.payload.small, Int32(number), "\(setting): \(response)")
        }
        XCTAssertLessThan(try Memory.resident() - before, Self.memoryLimit, "\(setting)")
        while let message = try await messages.next() { received += message.data.count }
        XCTAssertEqual(received, total, "\(setting)")
      }
    }
  }

  // MARK: Sending

  /// What a client may have handed over of 16 KiB messages, before `send` waits: its own 64 KiB, the server's
  /// window or the sockets' buffers.
  private static let acceptedLimit = (16 << 20) / (16 << 10)

  func testSendWaitsForTheServer() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version) { embedded in
        let mayRead = Counter()
        embedded.server.onRaw("/lazy") { request, responder in
          while mayRead.value == 0 { try await responder.sleep(.milliseconds(2)) }
          let body = try await request.body()
          // The length, as the number of a `SumResponse`.
          var message = ByteBuffer(bytes: [8])
          var rest = UInt64(body.readableBytes)
          while rest >= 0x80 {
            message.writeInteger(UInt8(rest & 0x7f) | 0x80)
            rest >>= 7
          }
          message.writeInteger(UInt8(rest))
          var answer = ByteBuffer(bytes: [0, 0, 0, 0, UInt8(message.readableBytes)])
          answer.writeBuffer(&message)
          answer.writeBytes([2, 0, 0, 0, 2])
          answer.writeString("{}")
          try await responder.respond(headers: ["content-type": "application/connect+proto"], body: answer)
        }
        let method = MethodSpec<SumRequest, SumResponse>(path: "/lazy", streamType: .clientStream)
        let stream = embedded.client.clientStream(method)
        let count = 4096
        let text = String(repeating: "x", count: 16 << 10)
        let message = SumRequest.with { $0.instruction.trailers = [.with { $0.name = text }] }
        let size = try message.serializedData().count + 5
        let accepted = Counter()
        let sender = Task {
          for _ in 0..<count {
            try await stream.send(message)
            accepted.increment()
          }
        }
        var last = -1
        var sightings = 0
        try await eventually("\(accepted.value) messages were accepted, and more are") {
          sightings = accepted.value == last && last > 0 ? sightings + 1 : 0
          last = accepted.value
          return sightings > 200
        }
        print("\(version.rawValue): a server that reads nothing was sent \(last) messages of 16 KiB")
        XCTAssertLessThan(last, Self.acceptedLimit, version.rawValue)
        mayRead.increment()
        try await sender.value
        XCTAssertEqual(accepted.value, count, version.rawValue)
        let response = await stream.closeAndReceive()
        XCTAssertEqual(response.message?.sum, Int64(count * size), "\(version.rawValue): \(response)")
      }
    }
  }

  /// The form with callbacks: what is not accepted is bounded too.
  func testQueuedMessagesAreBounded() async throws {
    for version in Version.allCases {
      try await EmbeddedServer.run(version, configure: { $1.limits.maximumQueuedMessages = 10 }) { embedded in
        embedded.server.onRaw("/never") { _, responder in await responder.waitUntilClosed() }
        let method = MethodSpec<SumRequest, SumResponse>(path: "/never", streamType: .clientStream)
        let responses = Recorder<ResponseMessage<SumResponse>>()
        let completions = Recorder<Code>()
        let handle = embedded.client.clientStream(method) { responses.record($0) }
        let message = SumRequest.with {
          $0.instruction.trailers = [.with { $0.name = String(repeating: "x", count: 1 << 20) }]
        }
        let count = 100
        for _ in 0..<count { handle.send(message) { completions.record($0?.code ?? .ok) } }
        try await eventually("a message too many") { completions.values.contains(.resourceExhausted) }
        handle.cancel()
        try await completions.wait(for: count)
        XCTAssertEqual(completions.values.count, count, version.rawValue)
        XCTAssertLessThan(completions.values.count { $0 == .ok }, 30, version.rawValue)
        // The ten that waited, but for those that were accepted meanwhile.
        XCTAssertLessThanOrEqual(completions.values.count { $0 == .failedPrecondition }, 10, version.rawValue)
        XCTAssertGreaterThan(completions.values.count { $0 == .failedPrecondition }, 0, version.rawValue)
        let response = try await responses.wait(for: 1)[0]
        XCTAssertEqual(response.code, .canceled, version.rawValue)
      }
    }
  }
}
