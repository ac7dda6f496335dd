internal import ConformanceMessages
internal import XCTest

/// Calls whose version of HTTP the server chooses (ALPN).
final class NegotiationTests: XCTestCase {
  /// The server offers what the case asks for.
  func testAllCalls() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.offered.flatMap { library.cases($0) }
    try await ConformanceCase.runInBothForms(cases, arguments: ["--alpn"])
  }

  /// Without TLS there is nothing to choose: the case says which version it is.
  func testCleartext() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.simple.flatMap { [library.unary($0), library.halfDuplex($0)] }
    try await ConformanceCase.run(cases, arguments: ["--alpn"])
  }

  /// The server prefers HTTP/2, or has only HTTP/1.1, where the case asks for the other.
  func testAnotherVersionFailsTheCase() async throws {
    let server = try await ConformanceServer.shared()
    let library = CaseLibrary(server: server)
    var expected: [String: String] = [:]
    var requests: [CompatRequest] = []
    for setting in CaseSetting.offered where setting.networkProtocol != .grpc {
      let ports = setting.security == .mutual ? server.mutualPorts : server.httpsPorts
      let isHTTP1 = setting.version == .httpVersion1
      let kinds = [
        library.unary(setting), library.unaryError(setting), library.clientStream(setting),
        library.serverStream(setting), library.halfDuplex(setting),
      ]
      for var request in kinds.map(\.request) {
        request.port = UInt32(isHTTP1 ? ports.both : ports.http1)
        requests.append(request)
        expected[request.testName] =
          isHTTP1
          ? "broken: the call goes over HTTP/2, and the case asks for HTTP/1.1"
          : "broken: the call goes over HTTP/1.1, and the case asks for HTTP/2"
      }
    }
    XCTAssertEqual(requests.count, 40)
    for arguments in [["--alpn"], ["--alpn", "--callbacks"]] {
      let responses = try await ClientUnderTest.run(requests, arguments: arguments)
      for (name, message) in expected {
        XCTAssertEqual(responses[name]?.error.message, message, name)
      }
    }
  }
}
