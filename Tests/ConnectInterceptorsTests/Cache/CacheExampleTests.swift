import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import SwiftProtobuf
import XCTest

/// The examples of the article "Caching", in use.
final class CacheExampleTests: XCTestCase {
  func testCache() async throws {
    let transport = InMemoryTransport()
    let count = Observed(0)
    transport.onUnary(TestMethods.lookup) { request, _ in
      let number = count.update { count in
        count += 1
        return count
      }
      return .with { $0.value = "\(request.key) \(number)" }
    }

    let cache = ResponseCache(configuration: .init(timeToLive: .seconds(300), staleOnError: .seconds(3600)))
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [
        { _ in CacheReadInterceptor(cache) },
        { _ in CacheWriteInterceptor(cache) },
      ],
      unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
    )

    let client = ProtocolClient(httpClient: transport, config: config)
    let lookup = TestMethods.lookup
    let request = LookupRequest.with { $0.key = "k" }
    _ = try await client.unary(lookup, request).get()
    var values: [String?] = []
    func warn() { XCTFail("the network is there") }
    func show(_ response: ResponseMessage<LookupResponse>) { values.append(response.message?.value) }

    var options = CallOptions()
    options.context[CachePolicy.self] = .networkFirst
    let response = await client.unary(lookup, request, options: options)
    if CacheStatus(response.headers) == .stale { warn() }

    for await response in client.cacheAndNetwork(lookup, request) { show(response) }  // at most two

    XCTAssertEqual(response.message?.value, "k 2")
    XCTAssertEqual(values, ["k 2", "k 3"])
  }

  func testPersistedRequests() async throws {
    let requests = PersistedRequests(minimumByteCount: 1024)
    let config = ProtocolClientConfig(
      host: "https://api.example.com",
      interceptors: [{ _ in PersistedRequestInterceptor(requests) }],
      unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 8192)
    )

    let transport = InMemoryTransport()
    transport.onUnary(TestMethods.lookup) { request, _ in .with { $0.value = request.key } }
    let client = ProtocolClient(httpClient: transport, config: config)
    let key = String(repeating: "k", count: 2000)
    let response = try await client.unary(TestMethods.lookup, .with { $0.key = key }).get()
    XCTAssertEqual(response.value, key)
  }
}
