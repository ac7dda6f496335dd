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
