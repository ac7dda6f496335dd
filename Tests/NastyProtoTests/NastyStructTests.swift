internal import ConnectProtobufC
internal import NIOCore
internal import NastyStructStubs
internal import NastyStructs
import XCTest

/// The generator knows protoc-c's names and Swift's: what it wrote for proto files with nasty names compiles, and works.
final class NastyStructTests: XCTestCase {
  func testStructsAreThoseOfTheirMessages() {
    XCTAssertEqual(
      NastyStructs__CDe__V1X__SnakeCase__HTTPRequest__LeadX.messageType.name,
      "nasty_structs.CDe.v1_x.snake_case.HTTPRequest._lead__x_"
    )
    XCTAssertEqual(NastyStructs__CDe__V1X__.messageType.name, "nasty_structs.CDe.v1_x._")
    XCTAssertEqual(NastyStructs__CDe__V1X__XY.messageType.name, "nasty_structs.CDe.v1_x.X__Y_")
    XCTAssertEqual(NastyStructs__CDe__V1X__AB9cD.messageType.name, "nasty_structs.CDe.v1_x.aB9cD")
    XCTAssertEqual(Type__Self.messageType.name, "Type.Self")
    XCTAssertEqual(`Protocol`.messageType.name, "protocol")
    XCTAssertEqual(Nasty__Structs__V1__Alone.messageType.name, "nasty.structs.v1.Alone")
  }

  func testTheirDescriptorsAreKnown() throws {
    let text = #"{"myMap2":{"a":1},"messageType":2,"self":3}"#
    let message = try CMessage<NastyStructs__CDe__V1X__M>(jsonBytes: ByteBuffer(string: text))
    XCTAssertEqual(message.messagetype, 2)
    XCTAssertEqual(message.list(\.my_map_2, count: \.n_my_map_2).map(\.pointee.value), [1])
    XCTAssertEqual(String(buffer: try message.jsonBytes()), text)
    XCTAssertEqual(
      try nastyStructsNamesDescriptors.pool().services.map(\.name),
      ["nasty_structs.CDe.v1_x.names"]
    )
  }
}
