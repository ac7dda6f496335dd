internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf

typealias RawResponse = Connectrpc_Conformance_V1_RawHTTPResponse
typealias StreamItem = Connectrpc_Conformance_V1_StreamContents.StreamItem

/// A kind of call that the server can be told to answer byte by byte.
enum CallKind: String, CaseIterable {
  case unary
  case clientStream = "client stream"
  case serverStream = "server stream"
  case halfDuplex = "half-duplex stream"
  case fullDuplex = "full-duplex stream"

  /// The kinds that the setting's version of HTTP allows.
  static func all(_ setting: CaseSetting) -> [CallKind] {
    self.allCases.filter { $0 != .fullDuplex || setting.version == .httpVersion2 }
  }

  /// The kinds that Connect sends in envelopes.
  static func streams(_ setting: CaseSetting) -> [CallKind] {
    self.all(setting).filter { $0 != .unary }
  }

  /// Whether the response has exactly one message.
  var hasOneResponse: Bool { self == .unary || self == .clientStream }

  /// Makes `request` a call of this kind that is answered with `raw`.
  func apply(to request: inout CompatRequest, _ raw: RawResponse) {
    switch self {
    case .unary:
      request.method = "Unary"
      request.streamType = .unary
      request.requestMessages = [
        CaseLibrary.any(
          Connectrpc_Conformance_V1_UnaryRequest.with { $0.responseDefinition.rawResponse = raw }
        )
      ]
    case .clientStream:
      request.method = "ClientStream"
      request.streamType = .clientStream
      request.requestMessages = CaseLibrary.clientMessages(.with { $0.rawResponse = raw })
    case .serverStream:
      request.method = "ServerStream"
      request.streamType = .serverStream
      request.requestMessages = [CaseLibrary.serverMessage(.with { $0.rawResponse = raw })]
    case .halfDuplex, .fullDuplex:
      request.method = "BidiStream"
      request.streamType = self == .halfDuplex ? .halfDuplexBidiStream : .fullDuplexBidiStream
      request.requestMessages = CaseLibrary.bidiMessages(
        .with { $0.rawResponse = raw },
        isFullDuplex: self == .fullDuplex
      )
    }
  }

  /// A call of this kind that is answered with `raw`.
  func rawCase(
    _ name: String,
    _ setting: CaseSetting,
    _ server: ConformanceServer,
    _ raw: RawResponse,
    edit: (inout CompatRequest) -> Void = { _ in },
    check: @escaping (ResponseResult) throws -> Void
  ) -> ConformanceCase {
    ConformanceCase("\(name), \(self.rawValue)", setting, server) {
      self.apply(to: &$0, raw)
      edit(&$0)
    } check: {
      try check($0)
    }
  }
}

/// The expected end of a call.
struct ExpectedEnd {
  var code: Connectrpc_Conformance_V1_Code?
  var message: String?
  /// The HTTP status of an error; nil if any status is fine.
  var status: Int32? = 200

  /// No error.
  static let ok = ExpectedEnd(code: nil)

  init(code: Connectrpc_Conformance_V1_Code?) {
    self.code = code
  }

  static func error(
    _ code: Connectrpc_Conformance_V1_Code,
    _ message: String? = nil,
    status: Int32? = 200
  ) -> ExpectedEnd {
    var end = ExpectedEnd(code: code)
    end.message = message
    end.status = status
    return end
  }

  /// Checks the end, and the number of payloads before it. A call with one response has no payload if it fails.
  func check(_ result: ResponseResult, _ kind: CallKind, payloads: Int) throws {
    guard let code = self.code else {
      try result.expectNoError()
      try expect(result.payloads.count, payloads, "the number of payloads")
      return
    }
    try result.expectError(code, message: self.message)
    if let status = self.status { try expect(result.httpStatusCode, status, "the HTTP status") }
    try expect(result.payloads.count, kind.hasOneResponse ? 0 : payloads, "the number of payloads")
  }
}

extension StreamItem {
  /// An envelope with a message, compressed if `compression` says so.
  static func message(
    _ message: some SwiftProtobuf.Message,
    flags: UInt32 = 0,
    compression: Connectrpc_Conformance_V1_Compression = .unspecified
  ) -> StreamItem {
    .with {
      $0.flags = flags
      $0.payload.binaryMessage = CaseLibrary.any(message)
      $0.payload.compression = compression
    }
  }

  /// An envelope with text.
  static func text(
    _ text: String,
    flags: UInt32,
    compression: Connectrpc_Conformance_V1_Compression = .unspecified
  ) -> StreamItem {
    .with {
      $0.flags = flags
      $0.payload.text = text
      $0.payload.compression = compression
    }
  }
}
