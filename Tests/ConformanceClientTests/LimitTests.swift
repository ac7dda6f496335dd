internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

/// Deadlines and the receive limit, in both forms of the API.
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
      let fullDuplex = make("full-duplex BidiStream") {
        $0.method = "BidiStream"
        $0.streamType = .fullDuplexBidiStream
        $0.requestMessages = CaseLibrary.bidiMessages(stream, isFullDuplex: true)
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
      ] + (setting.version == .httpVersion2 ? [fullDuplex] : [])
    }
    try await ConformanceCase.runInBothForms(cases)
  }

  /// By POST and by GET.
  func testDeadlinesOfUnaryCalls() async throws {
    let server = try await ConformanceServer.shared()
    var definition = CaseLibrary.unaryDefinition
    definition.responseDelayMs = 2000
    let post = CaseLibrary.any(
      Connectrpc_Conformance_V1_UnaryRequest.with { $0.responseDefinition = definition }
    )
    let get = CaseLibrary.any(
      Connectrpc_Conformance_V1_IdempotentUnaryRequest.with { $0.responseDefinition = definition }
    )
    let cases = CaseSetting.simple.flatMap { setting in
      [false, true].filter { !$0 || setting.networkProtocol == .connect }.map { isGET in
        ConformanceCase("deadline of a unary call by \(isGET ? "GET" : "POST")", setting, server) {
          $0.method = isGET ? "IdempotentUnary" : "Unary"
          $0.streamType = .unary
          $0.useGetHTTPMethod = isGET
          $0.timeoutMs = 150
          $0.requestMessages = [isGET ? get : post]
        } check: { result in
          try result.expectError(.deadlineExceeded)
          try expect(result.payloads.count, 0, "the number of payloads")
        }
      }
    }
    try await ConformanceCase.runInBothForms(cases)
  }

  /// The second message of a stream, after one that has come.
  func testDeadlineBetweenMessages() async throws {
    let server = try await ConformanceServer.shared()
    var definition = CaseLibrary.streamDefinition
    definition.responseDelayMs = 1500
    try await ConformanceCase.runInBothForms(
      CaseSetting.simple.filter { $0.version == .httpVersion2 }.map { setting in
        ConformanceCase("deadline between messages", setting, server) {
          $0.method = "BidiStream"
          $0.streamType = .fullDuplexBidiStream
          $0.timeoutMs = 2600
          $0.requestMessages = CaseLibrary.bidiMessages(definition, isFullDuplex: true)
        } check: { result in
          try result.expectPayloads(["first"])
          try result.expectError(.deadlineExceeded)
          try expect(result.numUnsentRequests, 0, "the number of unsent requests")
        }
      }
    )
  }

  func testDeadlineWhileSending() async throws {
    let server = try await ConformanceServer.shared()
    try await ConformanceCase.runInBothForms(
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
    try await ConformanceCase.runInBothForms(cases)
  }

  /// A message of exactly the limit is received; of one byte more, it is not, whatever came before it.
  func testTheReceiveLimitIsExact() async throws {
    let server = try await ConformanceServer.shared()
    let message = Connectrpc_Conformance_V1_UnaryResponse.with {
      $0.payload.data = Data(repeating: 65, count: 3000)
    }
    var larger = message
    larger.payload.data.append(65)
    let size = UInt32(try message.serializedData().count)
    var cases: [ConformanceCase] = []
    for setting in CaseSetting.all
    where setting.security == .cleartext && setting.codec == .proto
      && [.identity, .gzip].contains(setting.compression)
    {
      for kind in CallKind.all(setting) {
        func add(
          _ name: String,
          _ messages: [Connectrpc_Conformance_V1_UnaryResponse],
          _ end: ExpectedEnd,
          payloads: Int
        ) {
          let raw = Self.response(messages, kind, setting)
          cases.append(
            kind.rawCase(name, setting, server, raw) {
              $0.messageReceiveLimit = size
            } check: {
              try end.check($0, kind, payloads: payloads)
            }
          )
        }
        add("a message of the limit", [message], .ok, payloads: 1)
        add("a message of the limit and a byte", [larger], .error(.resourceExhausted), payloads: 0)
        if kind.hasOneResponse { continue }
        let several = [message, message, larger, message]
        add("many messages of the limit", Array(repeating: message, count: 5), .ok, payloads: 5)
        add("the limit and then a byte more", several, .error(.resourceExhausted), payloads: 2)
      }
    }
    try await ConformanceCase.runInBothForms(cases)
  }

  /// A good response with these messages, compressed as the setting says.
  private static func response(
    _ messages: [Connectrpc_Conformance_V1_UnaryResponse],
    _ kind: CallKind,
    _ setting: CaseSetting
  ) -> RawResponse {
    let isCompressed = setting.compression == .gzip
    let items = messages.map {
      StreamItem.message($0, flags: isCompressed ? 1 : 0, compression: setting.compression)
    }
    func head(_ type: String, _ encoding: String) -> [Header] {
      [Header("content-type", type)] + (isCompressed ? [Header(encoding, "gzip")] : [])
    }
    return .with {
      $0.statusCode = 200
      switch setting.networkProtocol {
      case .connect where kind == .unary:
        $0.headers = head("application/proto", "content-encoding")
        $0.unary = items[0].payload
      case .connect:
        $0.headers = head("application/connect+proto", "connect-content-encoding")
        $0.stream.items = items + [.text("{}", flags: 2)]
      case .grpcWeb:
        $0.headers = head("application/grpc-web+proto", "grpc-encoding")
        $0.stream.items = items + [.text("grpc-status: 0\r\n", flags: 0x80)]
      default:
        $0.headers = head("application/grpc+proto", "grpc-encoding")
        $0.stream.items = items
        $0.trailers = [Header("grpc-status", "0")]
      }
    }
  }
}
