internal import ConformanceMessages
internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
internal import TestSupport
internal import XCTest

/// Standard input and output, and the life of the process.
final class FramingTests: XCTestCase {
  private static let unaryPath = "/connectrpc.conformance.v1.ConformanceService/Unary"

  /// A request to a port where nobody listens.
  private func unreachable(_ name: String) -> CompatRequest {
    .with {
      $0.testName = name
      $0.httpVersion = .httpVersion1
      $0.protocol = .connect
      $0.codec = .proto
      $0.compression = .identity
      $0.host = "127.0.0.1"
      $0.port = 1
      $0.method = "Unary"
      $0.streamType = .unary
      $0.requestMessages = [CaseLibrary.any(Connectrpc_Conformance_V1_UnaryRequest())]
    }
  }

  private func request(_ name: String, to server: LoopbackServer) -> CompatRequest {
    var request = self.unreachable(name)
    request.port = UInt32(server.port)
    return request
  }

  private func slowServer(_ delay: Duration) async throws -> LoopbackServer {
    let server = try await LoopbackServer.start()
    server.onRaw(Self.unaryPath) { request, responder in
      _ = try await request.body()
      try await responder.sleep(delay)
      try await responder.respond(headers: ["content-type": "application/proto"])
    }
    return server
  }

  // MARK: Input

  func testEmptyInput() async throws {
    let client = try ClientUnderTest()
    try client.process.closeInput()
    let output = try await client.process.readAll()
    let status = try await client.process.exitStatus()
    XCTAssertEqual(output, Data())
    XCTAssertEqual(status, 0)
  }

  func testAnswersBeforeTheInputEnds() async throws {
    let client = try ClientUnderTest()
    for name in ["first", "second"] {
      try await client.process.write(try ClientUnderTest.frame(self.unreachable(name)))
      let prefix = try await client.process.read(4)
      let body = try await client.process.read(prefix.reduce(0) { $0 << 8 | Int($1) })
      let response = try ClientUnderTest.responses(in: prefix + body)[0]
      XCTAssertEqual(response.testName, name)
      XCTAssertEqual(response.response.error.code, .unavailable)
    }
    try client.process.closeInput()
    let status = try await client.process.exitStatus()
    XCTAssertEqual(status, 0)
  }

  func testInputByteByByte() async throws {
    let client = try ClientUnderTest()
    for byte in try ClientUnderTest.frame(self.unreachable("slow")) {
      try await client.process.write(Data([byte]))
    }
    try client.process.closeInput()
    let responses = try ClientUnderTest.responses(in: await client.process.readAll())
    XCTAssertEqual(responses.map(\.testName), ["slow"])
  }

  func testCallsFinishAfterTheInputEnds() async throws {
    let server = try await self.slowServer(.milliseconds(400))
    let responses = try await ClientUnderTest.run([self.request("late", to: server)])
    XCTAssertEqual(responses["late"]?.response.hasError, false)
    XCTAssertEqual(responses["late"]?.response.payloads.count, 1)
    await server.stop()
  }

  func testHalfAMessage() async throws {
    let client = try ClientUnderTest()
    let frame = try ClientUnderTest.frame(self.unreachable("whole"))
    try await client.process.write(frame + frame.dropLast(5))
    try client.process.closeInput()
    // What was understood is answered nevertheless.
    let responses = try ClientUnderTest.responses(in: await client.process.readAll())
    let status = try await client.process.exitStatus()
    XCTAssertEqual(responses.map(\.testName), ["whole"])
    XCTAssertEqual(status, 1)
    XCTAssertTrue(client.process.errorOutput.contains("ended after"), client.process.errorOutput)
  }

  func testHalfALength() async throws {
    let client = try ClientUnderTest()
    try await client.process.write(Data([0, 0]))
    try client.process.closeInput()
    let status = try await client.process.exitStatus()
    XCTAssertEqual(status, 1)
  }

  func testGarbage() async throws {
    for garbage in [Data("GET / HTTP/1.1\r\n\r\n".utf8), Data([0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff])] {
      let client = try ClientUnderTest()
      try await client.process.write(garbage)
      let status = try await client.process.exitStatus()
      XCTAssertEqual(status, 1)
      XCTAssertFalse(client.process.errorOutput.isEmpty)
    }
  }

  // MARK: Life

  func testTerminatesAtOnce() async throws {
    let server = try await self.slowServer(.seconds(60))
    let client = try ClientUnderTest()
    try await client.process.write(try ClientUnderTest.frame(self.request("endless", to: server)))
    _ = try await server.request(to: Self.unaryPath)
    let start = ContinuousClock.now
    client.process.signal(SIGTERM)
    let status = try await client.process.exitStatus()
    XCTAssertEqual(status, -SIGTERM)
    XCTAssertLessThan(ContinuousClock.now - start, .seconds(1))
    await server.stop()
  }

  func testHundredsOfCallsAtOnce() async throws {
    for version in [Connectrpc_Conformance_V1_HTTPVersion.httpVersion1, .httpVersion2] {
      let server = try await self.slowServer(.milliseconds(300))
      let requests = (0..<600).map { index in
        var request = self.request("call \(index)", to: server)
        request.httpVersion = version
        return request
      }
      let start = ContinuousClock.now
      let responses = try await ClientUnderTest.run(requests)
      // One after the other they would take three minutes.
      XCTAssertLessThan(ContinuousClock.now - start, .seconds(20))
      XCTAssertEqual(responses.count, 600)
      XCTAssertTrue(responses.values.allSatisfy { !$0.response.hasError && $0.response.payloads.count == 1 })
      await server.stop()
    }
  }

  func testACallThatHangsIsGivenUp() async throws {
    let server = try await self.slowServer(.seconds(60))
    let requests = [self.request("endless", to: server), self.unreachable("other")]
    let responses = try await ClientUnderTest.run(requests, arguments: ["--case-timeout", "1"])
    XCTAssertTrue(responses["endless"]?.error.message.contains("did not end") == true)
    XCTAssertEqual(responses["other"]?.response.error.code, .unavailable)
    await server.stop()
  }

  // MARK: What cannot be done

  func testImpossibleRequestsAreErrors() async throws {
    let edits: [(String, (inout CompatRequest) -> Void)] = [
      ("HTTP/3", { $0.httpVersion = .httpVersion3 }),
      ("a protocol of the future", { $0.protocol = .UNRECOGNIZED(9) }),
      ("no codec", { $0.codec = .unspecified }),
      ("a codec of the future", { $0.codec = .UNRECOGNIZED(3) }),
      ("a compression of the future", { $0.compression = .UNRECOGNIZED(99) }),
      ("another service", { $0.service = "acme.v1.Service" }),
      ("another method", { $0.method = "Delete" }),
      ("another stream type", { $0.streamType = .serverStream }),
      ("no message", { $0.requestMessages = [] }),
      ("another message", { $0.requestMessages = [CaseLibrary.any(Header("x", "y"))] }),
      ("a broken message", { $0.requestMessages[0].value = Data([0xff, 0xff]) }),
      ("a raw request", { $0.rawRequest = .init() }),
    ]
    let requests = edits.map { name, edit in
      var request = self.unreachable(name)
      edit(&request)
      return request
    }
    let responses = try await ClientUnderTest.run(requests)
    for request in requests {
      XCTAssertEqual(responses[request.testName]?.error.message.isEmpty, false, request.testName)
    }
  }

  func testUnusableServersAreErrorsOfTheCall() async throws {
    let edits: [(String, (inout CompatRequest) -> Void)] = [
      ("nobody listens", { _ in }),
      ("no such port", { $0.port = 70_000 }),
      ("no such host", { $0.host = "no.such.host.invalid" }),
      ("a certificate that is none", { $0.serverTlsCert = Data("nonsense".utf8) }),
    ]
    let requests = edits.map { name, edit in
      var request = self.unreachable(name)
      edit(&request)
      return request
    }
    let responses = try await ClientUnderTest.run(requests)
    for request in requests {
      XCTAssertEqual(responses[request.testName]?.response.hasError, true, request.testName)
    }
  }

  func testUnknownArguments() async throws {
    for arguments in [["--nonsense"], ["--parallel"], ["--parallel", "0"], ["--parallel", "x"]] {
      let client = try ClientUnderTest(arguments: arguments)
      let status = try await client.process.exitStatus()
      XCTAssertEqual(status, 2, "\(arguments)")
    }
  }
}
