internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

/// The responses of ``RawResponseTests`` for gRPC and gRPC-Web.
final class RawGRPCResponseTests: XCTestCase {
  /// Headers and trailers as they go over the wire, and the body's messages.
  private struct Answer {
    var headers: [Header] = []
    var trailers: [Header] = []
    var messages = 0
  }

  private static let message = CaseLibrary.any(
    Connectrpc_Conformance_V1_UnaryResponse.with { $0.payload.data = Data("test response".utf8) }
  )

  private func unary(
    _ name: String,
    _ setting: CaseSetting,
    _ server: ConformanceServer,
    _ answer: Answer,
    check: @escaping (ResponseResult) throws -> Void
  ) -> ConformanceCase {
    let isWeb = setting.networkProtocol == .grpcWeb
    let raw = RawResponse.with {
      $0.statusCode = 200
      $0.headers = answer.headers
      if !answer.headers.contains(where: { $0.name == "content-type" }) {
        $0.headers.append(
          Header("content-type", isWeb ? "application/grpc-web+proto" : "application/grpc+proto")
        )
      }
      for _ in 0..<answer.messages {
        $0.stream.items.append(.with { $0.payload.binaryMessage = Self.message })
      }
      if isWeb, !answer.trailers.isEmpty {
        let lines = answer.trailers.flatMap { header in header.value.map { "\(header.name): \($0)\r\n" } }
        $0.stream.items.append(
          .with {
            $0.flags = 0x80
            $0.payload.text = lines.joined()
          }
        )
      } else {
        $0.trailers = answer.trailers
      }
    }
    return ConformanceCase(name, setting, server) {
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

  func testAnswers() async throws {
    let server = try await ConformanceServer.shared()
    var cases: [ConformanceCase] = []
    for setting in CaseSetting.simple where setting.networkProtocol != .connect {
      let ok = [Header("grpc-status", "0"), Header("x-custom-trailer", "bing")]
      cases.append(
        self.unary("a good answer", setting, server, Answer(trailers: ok, messages: 1)) {
          try $0.expectNoError()
          try $0.expectPayloads(["test response"])
          try $0.expectTrailer("x-custom-trailer", ["bing"])
        }
      )
      cases.append(
        self.unary("no message", setting, server, Answer(trailers: ok)) { try $0.expectError(.unimplemented) }
      )
      cases.append(
        self.unary("two messages", setting, server, Answer(trailers: ok, messages: 2)) {
          try $0.expectError(.unimplemented)
        }
      )
      let failed = [Header("grpc-status", "9"), Header("grpc-message", "it%20is%20%C3%BC%zz")]
      cases.append(
        self.unary("an error", setting, server, Answer(trailers: failed)) {
          try $0.expectError(.failedPrecondition, message: "it is ü%zz")
        }
      )
      cases.append(
        self.unary("trailers only", setting, server, Answer(headers: failed)) {
          try $0.expectError(.failedPrecondition, message: "it is ü%zz")
        }
      )
      let foreign = Answer(headers: [Header("content-type", "text/html")])
      cases.append(
        self.unary("foreign content", setting, server, foreign) { try $0.expectError(.unknown) }
      )
    }
    try await ConformanceCase.run(cases)
  }
}
