internal import XCTest

/// Every kind of call with every protocol, version of HTTP, codec, compression and kind of security.
final class CaseMatrixTests: XCTestCase {
  func testEveryCallWithEverySetting() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.all.flatMap { library.cases($0) }
    try await ConformanceCase.run(cases)
  }

  func testUnaryCallsWithCallbacks() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.all.flatMap { setting in
      [library.unary(setting), library.unaryError(setting), library.unimplemented(setting)]
    }
    try await ConformanceCase.run(cases, arguments: ["--callbacks"])
  }

  func testOneCallAtATime() async throws {
    let library = CaseLibrary(server: try await .shared())
    let cases = CaseSetting.simple.flatMap { library.cases($0) }
    try await ConformanceCase.run(cases, arguments: ["--parallel", "1"])
  }
}
