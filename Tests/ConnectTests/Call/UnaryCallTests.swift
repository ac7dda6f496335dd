import Connect
import XCTest

final class UnaryCallTests: XCTestCase {
  func testAMessageGoesOutAndComesBack() async throws {
    let transport = ScriptedTransport { stream in
      stream.reply(stream.sentMessage, headers: ["x-header": ["a"], "trailer-x-trailer": ["b"]])
    }
    let client = ProtocolClient.scripted(transport)

    let response = await client.unary(.unary, "hello")

    XCTAssertEqual(try response.get(), "hello")
    XCTAssertEqual(response.headers["x-header"], ["a"])
    XCTAssertEqual(response.trailers["x-trailer"], ["b"])
  }

  func testServerStream() async throws {
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        for message in ["\"a\"", "\"b\"", "\"c\""] { stream.sendMessage(message) }
        stream.endStream()
      }
    }
    let client = ProtocolClient.scripted(transport)
    var received: [Text] = []
    for try await message in client.serverStream(.serverStream, "go").messages { received.append(message) }
    XCTAssertEqual(received, ["a", "b", "c"])
  }
}
