// Extracted from Sources/Connect/Connect.docc/PlainCodableTypes.md by `make generate`.

import Connect
import ConnectTesting
import XCTest

struct Order: Codable, Sendable {
  var item: String
  var count: Int
}

struct Receipt: Codable, Sendable {
  var number: String
}

final class ShopTests: XCTestCase {
  func testBuys() async throws {
    let buy = MethodSpec<Order, Receipt>(codablePath: "/shop.v1.Shop/Buy", streamType: .unary)
    let transport = InMemoryTransport()
    transport.onUnary(buy) { order, _ in Receipt(number: "\(order.count)-\(order.item)") }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "http://memory", codec: JSONCodec())
    )

    let receipt = try await client.unary(buy, Order(item: "hat", count: 2)).get()
    XCTAssertEqual(receipt.number, "2-hat")
  }
}

private func Connect_PlainCodableTypes_1() async throws {
  let httpClient: any HTTPClientInterface = given()
  let buy = MethodSpec<Order, Receipt>(codablePath: "/shop.v1.Shop/Buy", streamType: .unary)
  let client = ProtocolClient(
    httpClient: httpClient,
    config: ProtocolClientConfig(host: "https://shop.example.com", codec: JSONCodec())
  )

  let receipt = try await client.unary(buy, Order(item: "hat", count: 2)).get()
  print(receipt.number)
  _ = httpClient
  _ = buy
  _ = client
  _ = receipt
}
