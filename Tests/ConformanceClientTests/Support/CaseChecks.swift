internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

typealias Header = Connectrpc_Conformance_V1_Header
typealias Payload = Connectrpc_Conformance_V1_ConformancePayload
typealias ResponseResult = Connectrpc_Conformance_V1_ClientResponseResult

/// A call and its expected result.
struct ConformanceCase {
  var request: CompatRequest
  var check: (ResponseResult) throws -> Void

  /// - Parameter name: The setting is appended, which makes the name unique.
  init(
    _ name: String,
    _ setting: CaseSetting,
    _ server: ConformanceServer,
    _ edit: (inout CompatRequest) -> Void,
    check: @escaping (ResponseResult) throws -> Void
  ) {
    self.request = setting.request(server)
    self.request.testName = "\(name), \(setting)"
    edit(&self.request)
    self.check = check
  }

  // Limits that one Python process can meet on a busy machine.
  private static let patience = ["--parallel", "128", "--case-timeout", "60"]

  /// Makes all these calls with one `async` client and one callback client, and checks the reported results.
  static func runInBothForms(_ cases: [ConformanceCase], arguments: [String] = []) async throws {
    try await Self.run(cases, arguments: arguments)
    try await Self.run(cases, arguments: arguments + ["--callbacks"])
  }

  /// Makes all these calls with one client, and checks the reported results.
  static func run(_ cases: [ConformanceCase], arguments: [String] = []) async throws {
    let arguments = Self.patience + arguments
    let responses = try await ClientUnderTest.run(cases.map(\.request), arguments: arguments)
    for item in cases {
      let name = item.request.testName
      let response = try XCTUnwrap(responses[name], name)
      guard case .response(let result)? = response.result else {
        XCTFail("\(name): \(response.error.message)")
        continue
      }
      do {
        try item.check(result)
      } catch {
        XCTFail("\(name): \(error)\n\(result.textFormatString())")
      }
    }
  }
}

/// An unexpected result.
struct Mismatch: Error, CustomStringConvertible {
  let description: String
}

func expect<Value: Equatable>(_ actual: Value, _ expected: Value, _ what: String) throws {
  guard actual == expected else { throw Mismatch(description: "\(what) is \(actual), not \(expected)") }
}

extension ResponseResult {
  func expectHeader(_ name: String, _ value: [String]) throws {
    try expect(self.responseHeaders.first { $0.name == name }?.value ?? [], value, "header \(name)")
  }

  func expectTrailer(_ name: String, _ value: [String]) throws {
    try expect(self.responseTrailers.first { $0.name == name }?.value ?? [], value, "trailer \(name)")
  }

  func expectNoError() throws {
    guard !self.hasError else {
      throw Mismatch(description: "unexpected error \(self.error.code): \(self.error.message)")
    }
  }

  func expectError(_ code: Connectrpc_Conformance_V1_Code, message: String? = nil) throws {
    guard self.hasError else { throw Mismatch(description: "there is no error") }
    guard self.error.code == code else {
      throw Mismatch(description: "the error is \(self.error.code) (\(self.error.message)), not \(code)")
    }
    if let message { try expect(self.error.message, message, "the error's message") }
  }

  /// The data of all payloads, as text.
  func expectPayloads(_ texts: [String]) throws {
    try expect(self.payloads.map { String(decoding: $0.data, as: UTF8.self) }, texts, "the payloads' data")
  }
}

extension Payload.RequestInfo {
  /// The header's values that the server saw.
  func header(_ name: String) -> [String] {
    self.requestHeaders.first { $0.name == name }?.value ?? []
  }

  /// Checks that the server received exactly these messages.
  func expectRequests(_ requests: [Google_Protobuf_Any]) throws {
    try expect(self.requests.count, requests.count, "the number of requests that the server saw")
    for (actual, expected) in zip(self.requests, requests) { try actual.expectSame(as: expected) }
  }
}

extension Google_Protobuf_Any {
  /// Checks that this has the type and the bytes of another message.
  func expectSame(as other: Google_Protobuf_Any) throws {
    try expect(self.typeURL, other.typeURL, "the type of a message")
    try expect(self.value, other.value, "the bytes of a message")
  }
}

extension Header {
  init(_ name: String, _ values: String...) {
    self.init()
    self.name = name
    self.value = values
  }
}
