internal import ConformanceMessages
internal import XCTest

/// Every kind of call with every protocol, version of HTTP, codec, compression and kind of security.
final class CaseMatrixTests: XCTestCase {
  func testConnect() async throws { try await self.runAll(.connect) }

  func testGRPC() async throws { try await self.runAll(.grpc) }

  func testGRPCWeb() async throws { try await self.runAll(.grpcWeb) }

  private func runAll(_ networkProtocol: Connectrpc_Conformance_V1_Protocol) async throws {
    let library = CaseLibrary(server: try await .shared())
    let settings = CaseSetting.all.filter { $0.networkProtocol == networkProtocol }
    try await ConformanceCase.run(settings.flatMap { library.cases($0) })
  }

  func testHTTP3() async throws {
    let library = CaseLibrary(server: try await .shared())
    try await ConformanceCase.run(CaseSetting.http3.flatMap { library.cases($0) })
  }

  func testAllCallsWithCallbacks() async throws {
    let library = CaseLibrary(server: try await .shared())
    let settings = CaseSetting.all.filter {
      $0.codec == .proto && $0.security != .mutual && [.identity, .gzip].contains($0.compression)
    }
    try await ConformanceCase.run(settings.flatMap { library.cases($0) }, arguments: ["--callbacks"])
  }

  func testOneCallAtATime() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.simple.flatMap { library.cases($0) }
    try await ConformanceCase.run(cases, arguments: ["--parallel", "1"])
  }
}
