internal import CAllocations
internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import SwiftProtobuf
import XCTest

/// What a call and a message allocate, on the thread of the client's event loop, where all of it happens. Debug builds
/// allocate about seven times as much for a call as release builds; the limits are for the former, and tell when something
/// is added. Lower them when something is saved.
final class AllocationTests: XCTestCase {
  /// A client whose event loop is its own, so that nothing else is counted.
  private func withClient(
    _ networkProtocol: NetworkProtocol,
    interceptors: [InterceptorFactory] = [],
    _ body: @Sendable (ProtocolClient, LoopbackServer) async throws -> Void
  ) async throws {
    try XCTSkipIf(!Self.countsAllocations, "allocations are not counted in this build")
    let server = try await LoopbackServer.start(.plaintext)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let httpClient = NIOHTTPClient(configuration: .init(version: .http2Only), eventLoopGroup: group)
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: server.url,
        networkProtocol: networkProtocol,
        interceptors: interceptors,
        timeout: .seconds(60)
      )
    )
    let result: Result<Void, any Error>
    do {
      try await withTaskExecutorPreference(client.taskExecutor) { try await body(client, server) }
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await httpClient.shutdown(within: .seconds(10))
    await server.stop()
    try await group.shutdownGracefully()
    try result.get()
  }

  private static var countsAllocations: Bool { allocations_count() > 0 }

  /// Allocations of this thread for one of `count` times that `body` does something, without those of the first times.
  private static func allocations(
    of count: Int,
    _ body: (_ count: Int) async throws -> Void
  ) async throws -> Double {
    try await body(count)
    let before = allocations_count_of_thread()
    try await body(count)
    return Double(allocations_count_of_thread() - before) / Double(count)
  }

  /// A method whose messages are bytes already, so that what is counted is the call's alone.
  private static let rawEcho = MethodSpec<ByteBuffer, ByteBuffer>(
    info: TestMethods.echo.info,
    input: .raw,
    output: .raw
  )

  private static func unaryCall(
    _ client: ProtocolClient
  ) async throws -> Double {
    let message = ByteBuffer(
      bytes: try EchoRequest.with { $0.payload.small = 1 }.serializedBytes() as [UInt8]
    )
    return try await self.allocations(of: 500) { count in
      for _ in 0..<count { _ = try await client.unary(Self.rawEcho, message).get() }
    }
  }

  func testUnaryCall() async throws {
    for (networkProtocol, limit) in [(NetworkProtocol.connect, 102.0), (.grpc, 110.0), (.grpcWeb, 156.0)] {
      try await self.withClient(networkProtocol) { client, _ in
        let allocations = try await Self.unaryCall(client)
        XCTAssertLessThanOrEqual(allocations, limit, "\(networkProtocol)")
      }
    }
  }

  func testInterceptor() async throws {
    try await self.withClient(.connect, interceptors: [{ _ in PassThroughInterceptor() }]) { client, _ in
      let allocations = try await Self.unaryCall(client)
      XCTAssertLessThanOrEqual(allocations, 140)
    }
  }

  /// Messages that have arrived, so that their reader does not wait. Each is in a box, since calls do not know its type.
  func testReceivedMessage() async throws {
    let count = 2000
    for (networkProtocol, limit) in [(NetworkProtocol.connect, 1.1), (.grpc, 1.1)] {
      try await self.withClient(networkProtocol) { client, server in
        let stream = client.serverStream(
          TestMethods.count,
          .with { $0.instruction.messageCount = UInt32(count) }
        )
        var messages = stream.messages.makeAsyncIterator()
        _ = try await messages.next()
        try await eventually("the server has written all") {
          server.journal.snapshot.requests(to: TestMethods.count.path).first?.outcome == .completed
        }
        // What follows on the same connection comes behind them.
        _ = try await client.unary(TestMethods.echo, EchoRequest()).get()
        let before = allocations_count_of_thread()
        var received = 1
        while try await messages.next() != nil { received += 1 }
        let allocations = Double(allocations_count_of_thread() - before) / Double(count)
        XCTAssertEqual(received, count)
        XCTAssertLessThanOrEqual(allocations, limit, "\(networkProtocol)")
      }
    }
  }

  func testSentMessage() async throws {
    for (networkProtocol, limit) in [(NetworkProtocol.connect, 5.5), (.grpc, 5.5)] {
      try await self.withClient(networkProtocol) { client, _ in
        let allocations = try await Self.allocations(of: 2000) { count in
          let stream = client.clientStream(TestMethods.sum)
          for _ in 0..<count { try await stream.send(.with { $0.number = 1 }) }
          let answer = try await stream.closeAndReceive().get()
          XCTAssertEqual(answer.sum, Int64(count))
        }
        XCTAssertLessThanOrEqual(allocations, limit, "\(networkProtocol)")
      }
    }
  }
}

extension MessageCoding<ByteBuffer> {
  fileprivate static let raw = MessageCoding(
    binary: Functions(encode: { bytes, _ in bytes }, decode: { bytes, _ in bytes }),
    json: nil
  )
}

/// Passes everything on, on all hooks.
private struct PassThroughInterceptor: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { request, proceed in proceed(.success(request)) },
      responseFunction: { response, proceed in proceed(response) },
      responseMetricsFunction: { metrics, proceed in proceed(metrics) }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { request, proceed in proceed(.success(request)) },
      responseFunction: { response, proceed in proceed(response) }
    )
  }
}
