import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// Equal messages have equal keys, whatever order their maps happen to have.
final class CacheKeyTests: XCTestCase {
  private typealias Request = Connect_Test_V1_ErrorInfo

  private static let method = MethodSpec<Request, LookupResponse>(
    path: "/maps.Service/Lookup",
    streamType: .unary,
    idempotencyLevel: .noSideEffects
  )

  /// Equal messages whose maps were filled in different ways, so that they lie in memory in different orders.
  private static func messages(_ count: Int) -> [Request] {
    (0..<count).map { number in
      .with { message in
        message.metadata = Dictionary(minimumCapacity: 64 << number)
        let keys = (0..<300).map { ($0 * (2 * number + 1)) % 300 }
        for key in number.isMultiple(of: 2) ? keys : keys.reversed() {
          message.metadata["key \(key)"] = "value \(key)"
        }
        for key in 0..<300 { message.metadata["key \(key)"] = "value \(key)" }
      }
    }
  }

  private func requestCount(_ networkProtocol: NetworkProtocol, _ codec: any Codec, _ unaryGET: UnaryGET)
    async throws -> Int
  {
    let transport = InMemoryTransport(executor: VirtualExecutor())
    let count = Observed(0)
    transport.onUnary(Self.method) { request, _ in
      count.update { $0 += 1 }
      return .with { $0.value = "\(request.metadata.count)" }
    }
    let cache = ResponseCache()
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        networkProtocol: networkProtocol,
        codec: codec,
        interceptors: [{ _ in CacheReadInterceptor(cache) }, { _ in CacheWriteInterceptor(cache) }],
        unaryGET: unaryGET
      )
    )
    for message in Self.messages(8) {
      let response = try await client.unary(Self.method, message).get()
      XCTAssertEqual(response.value, "300")
    }
    return count.value
  }

  func testMapsOfManyEntries() async throws {
    let messages = Self.messages(8)
    XCTAssertEqual(Set(messages).count, 1)
    XCTAssertGreaterThan(Set(try messages.map { try $0.serializedBytes() as [UInt8] }).count, 1)
    for (networkProtocol, codec, unaryGET) in [
      (NetworkProtocol.connect, ProtoCodec() as any Codec, UnaryGET.disabled),
      (.connect, ProtoCodec(), .alwaysEnabled),
      (.connect, JSONCodec(), .disabled),
      (.grpc, ProtoCodec(), .disabled),
      (.grpcWeb, ProtoCodec(), .disabled),
    ] {
      let count = try await self.requestCount(networkProtocol, codec, unaryGET)
      XCTAssertEqual(count, 1, "\(networkProtocol) \(codec) \(unaryGET)")
    }
  }
}
