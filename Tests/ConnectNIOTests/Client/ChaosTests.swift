import Connect
import ConnectChannels
import ConnectNIO
import NIOCore
import Synchronization
import XCTest

/// Many calls against a server that does anything: each gets one outcome, and the client can always be shut down.
final class ChaosTests: XCTestCase {
  func testEveryCallHasOneOutcome() async throws {
    let seed = UInt64.random(in: 0 ... .max)
    let random = Mutex(SeededRandom(seed: seed))
    @Sendable func roll(_ count: Int) -> Int {
      random.withLock { Int.random(in: 0..<count, using: &$0) }
    }
    let server = try await RawServer { connection in
      while let request = connection.takeRequest() {
        switch roll(12) {
        case 0: connection.close()
        case 1: connection.reset()
        case 2: connection.send("garbage\r\n\r\n")
        case 3:
          connection.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
          connection.close()
        case 4: connection.respond(request.body, fields: "connection: close\r\n")
        case 5:
          connection.respond(request.body)
          connection.close()
        case 6:
          // In one piece. What comes later cannot be told from the answer to the next request.
          let head = "HTTP/1.1 200 OK\r\ncontent-length: "
          connection.send("\(head)\(request.body.count)\r\n\r\n\(request.body)\(head)4\r\n\r\nevil")
        default: connection.respond(request.body)
        }
      }
    }
    for _ in 0..<5 {
      let client = try TestClient(
        server,
        .init(limits: .init(http1ConnectionsPerAddress: 1 + roll(8)), timeouts: .init(idle: .milliseconds(1)))
      )
      var calls: [(index: Int, call: TestCall)] = []
      for index in 0..<300 {
        let call = client.call()
        call.start(body: .complete(ByteBuffer(string: "\(index)")))
        if roll(5) == 0 {
          call.cancel()
        } else {
          calls.append((index, call))
        }
      }
      for (index, call) in calls {
        switch try await call.outcome() {
        case .response(let response):
          XCTAssertEqual(response.text, "\(index)", "seed \(seed)")
        case .failure(let failure):
          XCTAssertTrue(
            [.unavailable, .internalError].contains(failure.error.code),
            "\(failure.error), seed \(seed)"
          )
        }
      }
      await client.shutdown()
    }
    try await eventually("all closed, seed \(seed)") { server.open == 0 }
    await server.close()
  }
}
