import CGreeter
import Committed
import Connect
import ConnectProtobufC
import ConnectTesting
import Greeter
import GreeterStructs
import XCTest

final class GreeterTests: XCTestCase {
  func testGreeterAsksTheService() async throws {
    let mock = Greeter_V1_GreeterServiceClientMock()
    mock.mockGreet.answer(.message(.with { $0.greeting = "Hello, Ada" }))

    let greeting = try await Greeter(service: mock).greet("Ada")

    XCTAssertEqual(greeting, "Hello, Ada")
    XCTAssertEqual(mock.mockGreet.calls.first?.request?.name, "Ada")
  }

  func testStreamsAndCallbacksOfTheMock() async throws {
    let mock = Greeter_V1_GreeterServiceClientMock()
    mock.mockGreetAgain.answer(.messages([.with { $0.greeting = "Hello" }, .with { $0.greeting = "again" }]))
    var greetings: [String] = []
    for try await message in mock.greetAgain(.init()) { greetings.append(message.greeting) }
    XCTAssertEqual(greetings, ["Hello", "again"])

    mock.mockGreet.answer(.failure(ConnectError(code: .unavailable)))
    let response = await withCheckedContinuation { continuation in
      mock.greet(request: .init()) { continuation.resume(returning: $0) }
    }
    XCTAssertEqual(response.code, .unavailable)
  }

  func testStructsOfProtocC() throws {
    let request = try greetingRequest("Ada")
    XCTAssertEqual(request.name, "Ada")
    XCTAssertEqual(String(buffer: try request.jsonBytes()), #"{"name":"Ada"}"#)
    XCTAssertEqual(Greeter__V1__GreeterServiceClient.Methods.greet.path, greetPath)
  }

  func testUnscriptedMethodIsUnimplemented() async {
    let response = await Greeter_V1_GreeterServiceClientMock().greet(request: .init())
    XCTAssertEqual(response.code, .unimplemented)
  }

  func testCommandPluginGeneratesTheSameMethods() {
    XCTAssertEqual(greetPath, Greeter_V1_GreeterServiceClient.Methods.greet.path)
    XCTAssertEqual(greetPath, "/greeter.v1.GreeterService/Greet")
  }
}
