import ConnectSwiftCompatibility
import XCTest

final class ProtocolClientConfigTests: XCTestCase {
  func testDefaultsAreConnectSwifts() {
    let config = ProtocolClientConfig(host: "http://memory").native
    XCTAssertEqual(config.host, "http://memory")
    XCTAssertEqual(config.networkProtocol, .connect)
    XCTAssertEqual(config.codec.name, "json")
    XCTAssertEqual(config.unaryGET, .disabled)
    XCTAssertNil(config.timeout)
    XCTAssertNil(config.compression.requests)
    XCTAssertEqual(config.compression.responses.map(\.name), ["gzip"])
    XCTAssertTrue(config.interceptors.isEmpty)
    XCTAssertNil(config.methodInterceptors)
  }

  func testOptions() {
    let config = ProtocolClientConfig(
      host: "http://memory",
      networkProtocol: .grpc,
      codec: ProtoCodec(),
      unaryGET: .enabledForLimitedPayloadSizes(maxBytes: 10),
      timeout: 1.5,
      requestCompression: .init(minBytes: 7, pool: GzipCompressionPool()),
      responseCompressionPools: []
    ).native
    XCTAssertEqual(config.networkProtocol, .grpc)
    XCTAssertEqual(config.codec.name, "proto")
    XCTAssertEqual(config.unaryGET, .enabledForLimitedPayloadSizes(maxBytes: 10))
    XCTAssertEqual(config.timeout, .milliseconds(1500))
    XCTAssertEqual(config.compression.requests?.name, "gzip")
    XCTAssertEqual(config.compression.minimumRequestBytes, 7)
    XCTAssertTrue(config.compression.responses.isEmpty)
  }

  func testTimeoutsThatDurationsDoNotHave() {
    let longest = Duration.seconds(100 * 365 * 24 * 3600)
    for (timeout, duration) in [
      (Double.infinity, longest), (.nan, longest), (1e300, longest), (-1, .zero), (-.infinity, .zero),
    ] {
      XCTAssertEqual(ProtocolClientConfig(host: "", timeout: timeout).native.timeout, duration, "\(timeout)")
    }
  }

  func testRequestCompression() {
    let compression = ProtocolClientConfig.RequestCompression(minBytes: 2, pool: GzipCompressionPool())
    XCTAssertTrue(compression.shouldCompress(Data([1, 2])))
    XCTAssertFalse(compression.shouldCompress(Data([1])))
  }
}
