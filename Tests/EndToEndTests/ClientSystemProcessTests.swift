import LoopbackServer
import TestSupport
import XCTest

/// What a program gives to all of its clients, in a process that does nothing else.
final class ClientSystemProcessTests: XCTestCase {
  func testClientsOfAProcess() async throws {
    let server = try await LoopbackServer.start()
    server.onRaw("/echo") { request, responder in
      _ = try await request.body()
      try await responder.respond(headers: ["content-type": "application/proto"])
    }
    let program = try ChildProcess(
      product: "ServiceProgram",
      arguments: [server.url, "/echo", "--bootstrap"],
      environment: [:]
    )
    let status = try await program.exitStatus(within: .seconds(60))
    let output = String(decoding: try await program.readAll(), as: UTF8.self)
    XCTAssertEqual(status, 0, program.errorOutput)
    XCTAssertEqual(
      output,
      """
      set
      failed_precondition
      failed_precondition
      request to /echo
      connected
      response ok
      ended

      """
    )
    await server.stop()
  }
}
