internal import SwiftProtobuf
internal import XCTest

@testable internal import ConnectXDS

final class ResourceDecoderTests: XCTestCase {
  private typealias Wrapper = Envoy_Service_Discovery_V3_Resource

  private let text = "cluster_name: 'a'"

  private func wrapped(_ message: Google_Protobuf_Any?, name: String = "") throws -> Google_Protobuf_Any {
    let wrapper = Wrapper.with {
      $0.name = name
      if let message { $0.resource = message }
    }
    return try ResourceText.onWire(Google_Protobuf_Any(message: wrapper))
  }

  private func problems(_ decoded: ResourceDecoder.Decoded) -> [String] {
    if case .failure(let problem) = decoded.resource { problem.problems } else { [] }
  }

  func testPlainAndWrapped() throws {
    let message = try ResourceText.message(self.text, as: .endpoints)
    for (message, name) in [
      (message, "a"), (try self.wrapped(message), "a"), (try self.wrapped(message, name: "b"), "b"),
    ] {
      let decoded = ResourceText.decoder.decode(message, as: .endpoints)
      XCTAssertEqual(decoded.name, name)
      XCTAssertEqual(decoded.resource, .success(.endpoints(EndpointsResource(priorities: []))))
      XCTAssertEqual(decoded.message.typeURL, ResourceType.endpoints.url)
      XCTAssertEqual(decoded.message.value, try ResourceText.message(self.text, as: .endpoints).value)
    }
  }

  func testWrongType() throws {
    let message = try ResourceText.message(self.text, as: .endpoints)
    for (message, name) in [(message, nil), (try self.wrapped(message, name: "b"), "b")] {
      let decoded = ResourceText.decoder.decode(message, as: .cluster)
      XCTAssertEqual(decoded.name, name)
      XCTAssertEqual(
        self.problems(decoded),
        [
          "incorrect resource type \"envoy.config.endpoint.v3.ClusterLoadAssignment\" "
            + "(should be \"envoy.config.cluster.v3.Cluster\")"
        ]
      )
    }
  }

  func testBytesThatAreNoMessage() throws {
    for type in ResourceType.allCases {
      let broken = Google_Protobuf_Any.with {
        $0.typeURL = type.url
        $0.value.append(contentsOf: [0xff])
      }
      let plain = ResourceText.decoder.decode(broken, as: type)
      XCTAssertNil(plain.name)
      XCTAssertEqual(self.problems(plain), ["could not parse \(type.messageName)"])
      let wrapped = ResourceText.decoder.decode(try self.wrapped(broken, name: "a"), as: type)
      XCTAssertEqual(wrapped.name, "a")
      XCTAssertEqual(self.problems(wrapped), ["could not parse \(type.messageName)"])
    }
  }

  func testWrapperThatIsEmptyOrBroken() throws {
    let empty = ResourceText.decoder.decode(try self.wrapped(nil, name: "a"), as: .cluster)
    XCTAssertEqual(empty.name, "a")
    XCTAssertEqual(self.problems(empty), ["the wrapper \(Wrapper.protoMessageName) has no resource"])
    let broken = Google_Protobuf_Any.with {
      $0.typeURL = "type.googleapis.com/\(Wrapper.protoMessageName)"
      $0.value.append(contentsOf: [0xff])
    }
    let decoded = ResourceText.decoder.decode(broken, as: .cluster)
    XCTAssertNil(decoded.name)
    XCTAssertEqual(self.problems(decoded), ["could not parse the wrapper \(Wrapper.protoMessageName)"])
  }

  func testManyProblemsHaveABoundedSize() throws {
    let hosts = String(repeating: "virtual_hosts {} ", count: 1000)
    let problems = try ResourceText.problems(hosts, as: .routeConfiguration)
    XCTAssertEqual(problems.count, 101)
    XCTAssertEqual(problems[99], "virtual_hosts[99].domains: must be non-empty")
    XCTAssertEqual(problems[100], "and 900 problems more")
  }

  func testUnknownFieldsAreIgnored() throws {
    var message = try ResourceText.message(
      "name: 'a' virtual_hosts { domains: '*' }",
      as: .routeConfiguration
    )
    // Field 100, with the text "x".
    message.value.append(contentsOf: [0xa2, 0x06, 1, 0x78])
    let decoded = ResourceText.decoder.decode(message, as: .routeConfiguration)
    XCTAssertEqual(
      decoded.resource,
      .success(.routeConfiguration(.init(virtualHosts: [.init(domains: ["*"], routes: [])])))
    )
  }
}
