internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

typealias Cancel = CompatRequest.Cancel

/// The three kinds of cancellation, with every kind of call to which they apply, in both forms of the API.
final class CancellationTests: XCTestCase {
  private static let beforeCloseSend = Cancel.with { $0.beforeCloseSend = Google_Protobuf_Empty() }
  private static let afterCloseSend = Cancel.with { $0.afterCloseSendMs = 20 }

  private static func after(_ count: UInt32) -> Cancel {
    Cancel.with { $0.afterNumResponses = count }
  }

  /// Two responses, each so late that what comes before it can be told apart.
  private static let slowDefinition = StreamDefinition.with {
    $0.responseData = [Data("first".utf8), Data("second".utf8)]
    $0.responseDelayMs = 500
  }

  func testUnary() async throws {
    let server = try await ConformanceServer.shared()
    let message = CaseLibrary.any(
      Connectrpc_Conformance_V1_UnaryRequest.with { $0.responseDefinition.responseDelayMs = 2000 }
    )
    let cancels = [("20 ms", Self.afterCloseSend), ("unspecified", Cancel())]
    let cases = CaseSetting.simple.flatMap { setting in
      cancels.map { name, cancel in
        ConformanceCase("cancel unary, \(name)", setting, server) {
          $0.method = "Unary"
          $0.streamType = .unary
          $0.requestMessages = [message]
          $0.cancel = cancel
        } check: { result in
          try result.expectError(.canceled)
          try expect(result.payloads.count, 0, "the number of payloads")
        }
      }
    }
    try await ConformanceCase.runInBothForms(cases)
  }

  func testClientStream() async throws {
    let server = try await ConformanceServer.shared()
    var definition = CaseLibrary.unaryDefinition
    definition.responseDelayMs = 2000
    let messages = CaseLibrary.clientMessages(definition)
    let cancels = [("before close send", Self.beforeCloseSend), ("20 ms after", Self.afterCloseSend)]
    try await ConformanceCase.runInBothForms(
      CaseSetting.simple.flatMap { setting in
        cancels.map { name, cancel in
          ConformanceCase("cancel client stream \(name)", setting, server) {
            $0.method = "ClientStream"
            $0.streamType = .clientStream
            $0.requestMessages = messages
            $0.cancel = cancel
          } check: { result in
            try result.expectError(.canceled)
            try expect(result.payloads.count, 0, "the number of payloads")
            try expect(result.numUnsentRequests, 0, "the number of unsent requests")
          }
        }
      }
    )
  }

  func testServerStream() async throws {
    let server = try await ConformanceServer.shared()
    let message = CaseLibrary.serverMessage(Self.slowDefinition)
    let cancels = [
      ("after 0 responses", Self.after(0), 0), ("after 1 response", Self.after(1), 1),
      ("20 ms after close send", Self.afterCloseSend, 0),
    ]
    try await ConformanceCase.runInBothForms(
      CaseSetting.simple.flatMap { setting in
        cancels.map { name, cancel, count in
          ConformanceCase("cancel server stream \(name)", setting, server) {
            $0.method = "ServerStream"
            $0.streamType = .serverStream
            $0.requestMessages = [message]
            $0.cancel = cancel
          } check: { result in
            try result.expectError(.canceled)
            try expect(result.payloads.count, count, "the number of payloads")
          }
        }
      }
    )
  }

  func testHalfDuplex() async throws {
    let server = try await ConformanceServer.shared()
    let messages = CaseLibrary.bidiMessages(Self.slowDefinition, isFullDuplex: false)
    let cancels = [
      ("before close send", Self.beforeCloseSend, 0), ("20 ms after close send", Self.afterCloseSend, 0),
      ("after 0 responses", Self.after(0), 0), ("after 1 response", Self.after(1), 1),
    ]
    try await ConformanceCase.runInBothForms(
      CaseSetting.simple.flatMap { setting in
        cancels.map { name, cancel, count in
          ConformanceCase("cancel half-duplex stream \(name)", setting, server) {
            $0.method = "BidiStream"
            $0.streamType = .halfDuplexBidiStream
            $0.requestMessages = messages
            $0.cancel = cancel
          } check: { result in
            try result.expectError(.canceled)
            try expect(result.payloads.count, count, "the number of payloads")
            try expect(result.numUnsentRequests, 0, "the number of unsent requests")
          }
        }
      }
    )
  }

  func testFullDuplex() async throws {
    let server = try await ConformanceServer.shared()
    var definition = Self.slowDefinition
    definition.responseData.append(Data("third".utf8))
    definition.responseDelayMs = 200
    let messages = CaseLibrary.bidiMessages(definition, isFullDuplex: true)
    // The second message cannot be sent once the call is cancelled.
    let cancels: [(String, Cancel, payloads: Int, unsent: Int32)] = [
      ("before close send", Self.beforeCloseSend, 2, 0),
      ("20 ms after close send", Self.afterCloseSend, 2, 0),
      ("unspecified", Cancel(), 2, 0),
      ("after 0 responses", Self.after(0), 0, 1),
      ("after 1 response", Self.after(1), 1, 1),
      ("after 2 responses", Self.after(2), 2, 0),
    ]
    try await ConformanceCase.runInBothForms(
      CaseSetting.simple.filter { $0.version == .httpVersion2 }.flatMap { setting in
        cancels.map { name, cancel, payloads, unsent in
          ConformanceCase("cancel full-duplex stream \(name)", setting, server) {
            $0.method = "BidiStream"
            $0.streamType = .fullDuplexBidiStream
            $0.requestMessages = messages
            $0.cancel = cancel
          } check: { result in
            try result.expectError(.canceled)
            try expect(result.payloads.count, payloads, "the number of payloads")
            try expect(result.numUnsentRequests, unsent, "the number of unsent requests")
          }
        }
      }
    )
  }
}
