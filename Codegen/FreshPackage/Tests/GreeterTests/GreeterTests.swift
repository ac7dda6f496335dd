import Committed
import Connect
import Greeter
import XCTest

final class GreeterTests: XCTestCase {
  func testGeneratedClientCalls() async throws {
    let client = ProtocolClient(
      httpClient: NoNetwork(),
      config: ProtocolClientConfig(host: "http://localhost")
    )
    let greeter = Greeter(service: Greeter_V1_GreeterServiceClient(client: client))
    do {
      let greeting = try await greeter.greet("Ada")
      XCTFail("there is no network, but the greeting is \(greeting)")
    } catch let error as ConnectError {
      XCTAssertEqual(error.code, .unavailable)
      XCTAssertEqual(error.message, "no network")
    }
  }

  func testCommandPluginGeneratesTheSameMethods() {
    XCTAssertEqual(greetPath, Greeter_V1_GreeterServiceClient.Methods.greet.path)
    XCTAssertEqual(greetPath, "/greeter.v1.GreeterService/Greet")
  }
}

private struct NoNetwork: HTTPClientInterface {
  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    throw ConnectError(code: .unavailable, message: "no network")
  }
}
