internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

typealias RawResponse = Connectrpc_Conformance_V1_RawHTTPResponse

/// Responses that the server makes byte by byte, as the suite's cases of bad servers do.
final class RawResponseTests: XCTestCase {
  private func unary(
    _ name: String,
    _ setting: CaseSetting,
    _ server: ConformanceServer,
    _ raw: RawResponse,
    check: @escaping (ResponseResult) throws -> Void
  ) -> ConformanceCase {
    ConformanceCase(name, setting, server) {
      $0.method = "Unary"
      $0.streamType = .unary
      $0.requestMessages = [
        CaseLibrary.any(
          Connectrpc_Conformance_V1_UnaryRequest.with { $0.responseDefinition.rawResponse = raw }
        )
      ]
    } check: {
      try check($0)
    }
  }

  private static let payload = CaseLibrary.any(
    Connectrpc_Conformance_V1_UnaryResponse.with { $0.payload.data = Data("test response".utf8) }
  )

  /// The request says in both codecs what the server is to send.
  func testConnectUnary() async throws {
    let server = try await ConformanceServer.shared()
    let statuses: [(UInt32, Connectrpc_Conformance_V1_Code)] = [
      (400, .internal), (401, .unauthenticated), (403, .permissionDenied), (404, .unimplemented),
      (429, .unavailable), (500, .unknown), (502, .unavailable), (503, .unavailable), (504, .unavailable),
    ]
    var cases: [ConformanceCase] = []
    for setting in CaseSetting.all
    where setting.networkProtocol == .connect && setting.security == .cleartext
      && setting.compression == .identity
    {
      for (status, code) in statuses {
        let raw = RawResponse.with {
          $0.statusCode = status
          $0.headers = [Header("content-type", "text/html"), Header("x-custom-header", "foo")]
          $0.unary.text = "<html>sorry</html>"
        }
        cases.append(
          self.unary("HTTP status \(status)", setting, server, raw) { result in
            try result.expectError(code)
            try expect(result.httpStatusCode, Int32(status), "the HTTP status")
          }
        )
      }
      let type = setting.codec == .proto ? "application/proto" : "application/json"
      let answer = RawResponse.with {
        $0.statusCode = 200
        $0.headers = [Header("content-type", type), Header("trailer-x-custom-trailer", "bing")]
        if setting.codec == .proto {
          $0.unary.binaryMessage = Self.payload
        } else {
          $0.unary.text = #"{"payload": {"data": "dGVzdCByZXNwb25zZQ=="}, "unknown": 1}"#
        }
      }
      cases.append(
        self.unary("a raw answer", setting, server, answer) { result in
          try result.expectNoError()
          try result.expectPayloads(["test response"])
          try result.expectTrailer("x-custom-trailer", ["bing"])
        }
      )
      var foreign = answer
      foreign.headers[0].value = ["image/jpeg"]
      cases.append(
        self.unary("foreign content", setting, server, foreign) { try $0.expectError(.unknown) }
      )
      var encoded = answer
      encoded.headers.append(Header("content-encoding", "foo"))
      cases.append(
        self.unary("unknown encoding", setting, server, encoded) { try $0.expectError(.internal) }
      )
      var empty = answer
      empty.unary.text = setting.codec == .proto ? "" : "{}"
      cases.append(
        self.unary("no payload", setting, server, empty) { result in
          try result.expectNoError()
          try result.expectPayloads([""])
        }
      )
    }
    try await ConformanceCase.run(cases)
  }

  func testConnectStreams() async throws {
    let server = try await ConformanceServer.shared()
    let message = CaseLibrary.any(
      Connectrpc_Conformance_V1_ServerStreamResponse.with { $0.payload.data = Data("first".utf8) }
    )
    func item(_ flags: UInt32, _ text: String? = nil) -> Connectrpc_Conformance_V1_StreamContents.StreamItem {
      .with {
        $0.flags = flags
        if let text { $0.payload.text = text } else { $0.payload.binaryMessage = message }
      }
    }
    let noEnd = [item(0)]
    let good = [item(0), item(2, #"{"metadata": {"x-custom-trailer": ["bing"]}}"#)]
    let failed = [item(0), item(2, #"{"error": {"code": "out_of_range", "message": "oops"}}"#)]
    let noMessage = [item(2, "{}")]
    var cases: [ConformanceCase] = []
    for setting in CaseSetting.simple where setting.networkProtocol == .connect {
      func stream(
        _ name: String,
        _ items: [Connectrpc_Conformance_V1_StreamContents.StreamItem],
        isClientStream: Bool = false,
        check: @escaping (ResponseResult) throws -> Void
      ) {
        let raw = RawResponse.with {
          $0.statusCode = 200
          $0.headers = [Header("content-type", "application/connect+proto")]
          $0.stream.items = items
        }
        cases.append(
          ConformanceCase(name, setting, server) {
            if isClientStream {
              $0.method = "ClientStream"
              $0.streamType = .clientStream
              $0.requestMessages = CaseLibrary.clientMessages(.with { $0.rawResponse = raw })
            } else {
              $0.method = "ServerStream"
              $0.streamType = .serverStream
              $0.requestMessages = [CaseLibrary.serverMessage(.with { $0.rawResponse = raw })]
            }
          } check: {
            try check($0)
          }
        )
      }
      stream("a stream without its end", noEnd) { result in
        try result.expectPayloads(["first"])
        try result.expectError(.internal)
      }
      stream("a good stream", good) { result in
        try result.expectNoError()
        try result.expectPayloads(["first"])
        try result.expectTrailer("x-custom-trailer", ["bing"])
      }
      stream("a stream that fails", failed) { result in
        try result.expectPayloads(["first"])
        try result.expectError(.outOfRange, message: "oops")
      }
      stream("a client stream without a message", noMessage, isClientStream: true) {
        try $0.expectError(.unimplemented)
      }
      stream("a client stream with two messages", noEnd + good, isClientStream: true) {
        try $0.expectError(.unimplemented)
      }
      stream("a client stream that fails", failed, isClientStream: true) {
        try $0.expectError(.outOfRange, message: "oops")
        try expect($0.payloads.count, 0, "the number of payloads")
      }
    }
    try await ConformanceCase.run(cases)
  }
}
