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

  func testUnaryCallsWithCallbacks() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.all.flatMap { setting in
      [
        library.unary(setting), library.unaryError(setting), library.unimplemented(setting),
        library.timeoutIsSent(setting),
      ] + (setting.networkProtocol == .connect ? [library.get(setting)] : [])
    }
    try await ConformanceCase.run(cases, arguments: ["--callbacks"])
  }

  func testOneCallAtATime() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.simple.flatMap { library.cases($0) }
    try await ConformanceCase.run(cases, arguments: ["--parallel", "1"])
  }
}
