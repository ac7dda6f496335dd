internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

/// Deadlines and the receive limit.
final class LimitTests: XCTestCase {
  func testDeadlines() async throws {
    let server = try await ConformanceServer.shared()
    var unary = CaseLibrary.unaryDefinition
    unary.responseDelayMs = 2000
    var stream = CaseLibrary.streamDefinition
    stream.responseDelayMs = 2000
    let cases = CaseSetting.simple.flatMap { setting -> [ConformanceCase] in
      func make(_ method: String, _ edit: (inout CompatRequest) -> Void) -> ConformanceCase {
        ConformanceCase("deadline of \(method)", setting, server) {
          $0.timeoutMs = 150
          edit(&$0)
        } check: { result in
          try result.expectError(.deadlineExceeded)
          try expect(result.payloads.count, 0, "the number of payloads")
        }
      }
      return [
        make("Unary") {
          $0.method = "Unary"
          $0.streamType = .unary
          $0.requestMessages = [
            CaseLibrary.any(Connectrpc_Conformance_V1_UnaryRequest.with { $0.responseDefinition = unary })
          ]
        },
        make("ClientStream") {
          $0.method = "ClientStream"
          $0.streamType = .clientStream
          $0.requestMessages = CaseLibrary.clientMessages(unary)
        },
        make("ServerStream") {
          $0.method = "ServerStream"
          $0.streamType = .serverStream
          $0.requestMessages = [CaseLibrary.serverMessage(stream)]
        },
        make("half-duplex BidiStream") {
          $0.method = "BidiStream"
          $0.streamType = .halfDuplexBidiStream
          $0.requestMessages = CaseLibrary.bidiMessages(stream, isFullDuplex: false)
        },
      ]
    }
    try await ConformanceCase.run(cases)
  }

  func testDeadlineWhileSending() async throws {
    let server = try await ConformanceServer.shared()
    try await ConformanceCase.run(
      CaseSetting.simple.map { setting in
        ConformanceCase("deadline while sending", setting, server) {
          $0.method = "ClientStream"
          $0.streamType = .clientStream
          $0.timeoutMs = 150
          $0.requestDelayMs = 100
          $0.requestMessages = CaseLibrary.clientMessages(CaseLibrary.unaryDefinition)
        } check: { result in
          try result.expectError(.deadlineExceeded)
          try expect(result.numUnsentRequests, 2, "the number of unsent requests")
        }
      }
    )
  }

  func testReceiveLimit() async throws {
    let server = try await ConformanceServer.shared()
    let settings = CaseSetting.all.filter { $0.security == .cleartext }
    let cases = settings.flatMap { setting -> [ConformanceCase] in
      func unary(_ size: Int, check: @escaping (ResponseResult) throws -> Void) -> ConformanceCase {
        ConformanceCase("a message of \(size) bytes with a limit", setting, server) {
          $0.method = "Unary"
          $0.streamType = .unary
          $0.messageReceiveLimit = 20_000
          $0.requestMessages = [
            CaseLibrary.any(
              Connectrpc_Conformance_V1_UnaryRequest.with {
                // Compresses well: the limit counts what comes out.
                $0.responseDefinition.responseData = Data(repeating: 65, count: size)
              }
            )
          ]
        } check: {
          try check($0)
        }
      }
      var definition = StreamDefinition()
      definition.responseData = [Data("small".utf8), Data(repeating: 65, count: 25_000), Data("more".utf8)]
      let stream = ConformanceCase("a stream with a limit", setting, server) {
        $0.method = "ServerStream"
        $0.streamType = .serverStream
        $0.messageReceiveLimit = 40_000
        $0.requestMessages = [CaseLibrary.serverMessage(definition)]
      } check: { result in
        // The first response echoes the request, which has all of this.
        try result.expectNoError()
        try expect(result.payloads.count, 3, "the number of payloads")
      }
      return [
        unary(1_000) { try $0.expectNoError() },
        unary(25_000) {
          try $0.expectError(.resourceExhausted)
          try expect($0.payloads.count, 0, "the number of payloads")
        },
        stream,
      ]
    }
    try await ConformanceCase.run(cases)
  }
}
