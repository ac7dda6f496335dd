import Connect
import XCTest

final class NetworkProtocolTests: XCTestCase {
  private static let all: [NetworkProtocol] = [.connect, .grpc, .grpcWeb, .grpcWebText]

  func testEachIsEqualToItselfAlone() {
    for (index, one) in Self.all.enumerated() {
      for (otherIndex, other) in Self.all.enumerated() { XCTAssertEqual(one == other, index == otherIndex) }
    }
    XCTAssertEqual(Set(Self.all + Self.all).count, 4)
  }

  func testAutomatic() {
    XCTAssertEqual(NetworkProtocol.automatic().description, "automatic(grpc, grpc-web, connect)")
    XCTAssertEqual(NetworkProtocol.automatic([.connect]), .connect)
    XCTAssertEqual(NetworkProtocol.automatic([.connect]).description, "connect")
    XCTAssertEqual(NetworkProtocol.automatic([.automatic(), .connect]), .automatic())
    XCTAssertNotEqual(NetworkProtocol.automatic([.connect, .grpc]), .automatic([.grpc, .connect]))
    XCTAssertNotEqual(NetworkProtocol.automatic([]), .connect)
  }

  func testSwitch() {
    let names = Self.all.map { networkProtocol in
      switch networkProtocol {
      case .connect: "connect"
      case .grpc: "grpc"
      case .grpcWeb: "grpc-web"
      default: "another"
      }
    }
    XCTAssertEqual(names, ["connect", "grpc", "grpc-web", "another"])
  }
}
