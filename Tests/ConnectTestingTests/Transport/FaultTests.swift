import Connect
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import Synchronization
import XCTest

/// A transport that misbehaves on purpose.
final class FaultTests: XCTestCase {
  private static let network: [NetworkProtocol] = [.connect, .grpc, .grpcWeb, .grpcWebText]

  /// Counts to three, and answers `a` with `a`.
  private static func makeTransport() -> InMemoryTransport {
    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.echo) { request, _ in .with { $0.payload = request.payload } }
    transport.onServerStream(TestMethods.count) { _, responses, context in
      context.responseTrailers["x-trail"] = ["1"]
      for number: Int64 in 1...3 { try await responses.send(.with { $0.number = number }) }
    }
    return transport
  }

  private static func client(_ transport: InMemoryTransport, _ network: NetworkProtocol) -> ProtocolClient {
    InMemoryTransportTests.client(transport) { $0.networkProtocol = network }
  }

  // MARK: Chunks

  func testChunksMayBeSplitAnywhere() async throws {
    for network in Self.network {
      for fault in [
        InMemoryTransport.Fault.splitEvery(1), .splitEvery(2), .splitEvery(7), .splitAt([1, 4, 5, 6, 11]),
        .splitEvery(0), .splitEvery(-1), .splitEvery(.max), .splitAt([-3, 0]), .splitAt([.max, .min]),
      ] {
        let transport = Self.makeTransport()
        transport.inject(fault)
        let client = Self.client(transport, network)

        let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
        XCTAssertEqual(try response.requireMessage().payload.text, "hello", "\(network) \(fault)")

        let collected = try await client.serverStream(TestMethods.count, CountRequest()).results.collected()
        XCTAssertEqual(try collected.requireMessages().map(\.number), [1, 2, 3], "\(network) \(fault)")
        XCTAssertEqual(collected.trailers["x-trail"], ["1"], "\(network) \(fault)")
      }
    }
  }

  // MARK: Broken responses

  func testResetAfterAnyNumberOfBytes() async throws {
    for network in Self.network {
      for bytes in [0, 1, 5, 8, 13] {
        let transport = Self.makeTransport()
        transport.inject(.reset(afterBytes: bytes, code: 7))
        let stream = Self.client(transport, network).serverStream(TestMethods.count, CountRequest())
        let collected = try await stream.results.collected()
        let error = try collected.requireError(.unavailable)
        XCTAssertEqual(error.message, "the server reset the stream with HTTP/2 error code 7")
        // In binary form, each message takes 7 bytes.
        if network.description != "grpc-web-text" { XCTAssertEqual(collected.messages.count, bytes / 7) }
      }
    }
  }

  func testResetBehindTheEndDoesNothing() async throws {
    let transport = Self.makeTransport()
    transport.inject(.reset(afterBytes: 10_000))
    let response = await Self.client(transport, .connect).unary(TestMethods.echo, EchoRequest())
    XCTAssertEqual(response.code, .ok)
  }

  func testTrailersMayBeDropped() async throws {
    for network in Self.network {
      let transport = Self.makeTransport()
      transport.inject(.dropTrailers, at: TestMethods.count.path)
      let stream = Self.client(transport, network).serverStream(TestMethods.count, CountRequest())
      let collected = try await stream.results.collected()
      XCTAssertEqual(collected.messages.map(\.number), [1, 2, 3], "\(network)")
      XCTAssertNotNil(collected.error, "\(network)")
    }
  }

  // MARK: Silence

  func testStalls() async throws {
    for network in Self.network {
      for fault in [InMemoryTransport.Fault.stallBeforeHeaders, .stall(afterBytes: 0), .stall(afterBytes: 9)]
      {
        let transport = Self.makeTransport()
        transport.inject(fault)
        let stream = Self.client(transport, network).serverStream(
          TestMethods.count,
          CountRequest(),
          options: CallOptions(timeout: .milliseconds(20))
        )
        let collected = try await stream.results.collected()
        try collected.requireError(.deadlineExceeded)
        let expected = fault == .stall(afterBytes: 9) && network.description != "grpc-web-text" ? 1 : 0
        XCTAssertEqual(collected.messages.count, expected, "\(network) \(fault)")
        XCTAssertEqual(collected.headers.isEmpty, fault == .stallBeforeHeaders, "\(network) \(fault)")
      }
    }
  }

  // MARK: No response

  func testRefusedConnection() async throws {
    let transport = Self.makeTransport()
    transport.inject(.refuseConnection)
    let response = await Self.client(transport, .connect).unary(TestMethods.echo, EchoRequest())
    XCTAssertEqual(try response.requireError(.unavailable).message, "connection refused, on purpose")
  }

  func testRefusedStreamIsSentAgain() async throws {
    let transport = Self.makeTransport()
    transport.inject(.refuseStream, calls: 1)
    let client = Self.client(transport, .connect)
    let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "a" })
    XCTAssertEqual(try response.requireMessage().payload.text, "a")

    transport.inject(.refuseStream)
    let second = await client.unary(TestMethods.echo, EchoRequest())
    try second.requireError(.unavailable)
  }

  // MARK: Which calls

  func testFaultsAreOfAPathAndOfSoManyCalls() async throws {
    let transport = Self.makeTransport()
    transport.inject(.refuseConnection, at: TestMethods.echo.path, calls: 2)
    let client = Self.client(transport, .connect)
    let codes = Mutex<[Code]>([])
    for _ in 0..<3 {
      let response = await client.unary(TestMethods.echo, EchoRequest())
      codes.withLock { $0.append(response.code) }
    }
    XCTAssertEqual(codes.withLock { $0 }, [.unavailable, .unavailable, .ok])

    transport.inject(.refuseConnection)
    transport.inject()
    let response = await client.unary(TestMethods.echo, EchoRequest())
    XCTAssertEqual(response.code, .ok)
  }
}
