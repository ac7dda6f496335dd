internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf

typealias UnaryDefinition = Connectrpc_Conformance_V1_UnaryResponseDefinition
typealias StreamDefinition = Connectrpc_Conformance_V1_StreamResponseDefinition

/// The cases that run with every setting.
struct CaseLibrary {
  let server: ConformanceServer

  static let unaryDefinition = UnaryDefinition.with {
    $0.responseHeaders = [Header("x-custom-header", "foo", "bar")]
    $0.responseTrailers = [Header("x-custom-trailer", "bing")]
    $0.responseData = Data("test response".utf8)
  }

  static let error = Connectrpc_Conformance_V1_Error.with {
    $0.code = .failedPrecondition
    $0.message = "süß: 100% \"so\", it isn't"
    $0.details = [any(Header("a detail", "1", "2"))]
  }

  static func any(_ message: some SwiftProtobuf.Message) -> Google_Protobuf_Any {
    // Packing a message whose required fields are set does not fail.
    (try? Google_Protobuf_Any(message: message)) ?? Google_Protobuf_Any()
  }

  /// All kinds of calls, errors, metadata, and GET where the protocol has it.
  func cases(_ setting: CaseSetting) -> [ConformanceCase] {
    var cases = [
      self.unary(setting), self.unaryError(setting), self.unimplemented(setting), self.serverStream(setting),
      self.serverStreamError(setting), self.clientStream(setting), self.clientStreamError(setting),
      self.halfDuplex(setting), self.timeoutIsSent(setting), self.largeMessages(setting),
    ]
    if setting.version != .httpVersion1 {
      cases += [self.fullDuplex(setting), self.fullDuplexError(setting)]
    }
    if setting.networkProtocol == .connect { cases.append(self.get(setting)) }
    return cases
  }

  // MARK: One response

  func unary(_ setting: CaseSetting) -> ConformanceCase {
    let message = Self.any(
      Connectrpc_Conformance_V1_UnaryRequest.with {
        $0.responseDefinition = Self.unaryDefinition
        $0.requestData = Data(repeating: 7, count: 300)
      }
    )
    return ConformanceCase("unary", setting, self.server) {
      $0.method = "Unary"
      $0.streamType = .unary
      $0.requestHeaders = [Header("x-request", "one", "two")]
      $0.requestMessages = [message]
    } check: { result in
      try result.expectNoError()
      try result.expectPayloads(["test response"])
      try result.expectHeader("x-custom-header", ["foo", "bar"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      let info = result.payloads[0].requestInfo
      try info.expectRequests([message])
      try expect(info.header("x-request"), ["one", "two"], "the request header")
      try expect(info.header("x-http-method"), ["POST"], "the HTTP method")
      try expect(
        info.header("x-http-version"),
        [setting.version == .httpVersion1 ? "1.1" : "2"],
        "the version"
      )
      try expect(info.hasTimeoutMs, false, "a timeout")
      try self.expectCompression(setting, info, isUnary: true)
    }
  }

  func unaryError(_ setting: CaseSetting) -> ConformanceCase {
    let message = Self.any(
      Connectrpc_Conformance_V1_UnaryRequest.with {
        $0.responseDefinition = Self.unaryDefinition
        $0.responseDefinition.error = Self.error
      }
    )
    return ConformanceCase("unary error", setting, self.server) {
      $0.method = "Unary"
      $0.streamType = .unary
      $0.requestMessages = [message]
    } check: { result in
      try self.checkError(result, requests: [message])
      try expect(result.payloads.count, 0, "the number of payloads")
    }
  }

  func unimplemented(_ setting: CaseSetting) -> ConformanceCase {
    ConformanceCase("unimplemented", setting, self.server) {
      $0.method = "Unimplemented"
      $0.streamType = .unary
      $0.requestMessages = [Self.any(Connectrpc_Conformance_V1_UnimplementedRequest())]
    } check: {
      try $0.expectError(.unimplemented)
    }
  }

  func get(_ setting: CaseSetting) -> ConformanceCase {
    let message = Self.any(
      Connectrpc_Conformance_V1_IdempotentUnaryRequest.with { $0.responseDefinition = Self.unaryDefinition }
    )
    return ConformanceCase("get", setting, self.server) {
      $0.method = "IdempotentUnary"
      $0.streamType = .unary
      $0.useGetHTTPMethod = true
      $0.requestMessages = [message]
    } check: { result in
      try result.expectNoError()
      try result.expectPayloads(["test response"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      let info = result.payloads[0].requestInfo
      try info.expectRequests([message])
      try expect(info.header("x-http-method"), ["GET"], "the HTTP method")
      let query = info.connectGetInfo.queryParams
      try expect(query.first { $0.name == "connect" }?.value, ["v1"], "the query's version")
      try expect(query.first { $0.name == "encoding" }?.value, ["\(setting.codec)"], "the query's encoding")
      let encoding = Self.encoding(setting)
      let compression = query.first { $0.name == "compression" }?.value
      try expect(compression, encoding.map { [$0] }, "the query's compression")
      let base64 = query.first { $0.name == "base64" }?.value
      let isText = setting.codec == .json && encoding == nil
      try expect(base64, isText ? nil : ["1"], "the query's base64")
      try expect(info.header("content-encoding"), [], "a header for a body that there is not")
    }
  }

  func clientStream(_ setting: CaseSetting) -> ConformanceCase {
    let messages = Self.clientMessages(Self.unaryDefinition)
    return ConformanceCase("client stream", setting, self.server) {
      $0.method = "ClientStream"
      $0.streamType = .clientStream
      $0.requestMessages = messages
      $0.requestHeaders = [Header("x-request", "one", "two")]
      $0.requestDelayMs = 2
    } check: { result in
      try result.expectNoError()
      try result.expectPayloads(["test response"])
      try result.expectHeader("x-custom-header", ["foo", "bar"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      try result.payloads[0].requestInfo.expectRequests(messages)
      try expect(result.payloads[0].requestInfo.header("x-request"), ["one", "two"], "the request header")
      try expect(result.numUnsentRequests, 0, "the number of unsent requests")
      try self.expectCompression(setting, result.payloads[0].requestInfo, isUnary: false)
    }
  }

  func clientStreamError(_ setting: CaseSetting) -> ConformanceCase {
    var definition = Self.unaryDefinition
    definition.error = Self.error
    let messages = Self.clientMessages(definition)
    return ConformanceCase("client stream error", setting, self.server) {
      $0.method = "ClientStream"
      $0.streamType = .clientStream
      $0.requestMessages = messages
    } check: {
      try self.checkError($0, requests: messages)
    }
  }

  func timeoutIsSent(_ setting: CaseSetting) -> ConformanceCase {
    let message = Self.any(
      Connectrpc_Conformance_V1_UnaryRequest.with { $0.responseDefinition = Self.unaryDefinition }
    )
    return ConformanceCase("timeout is sent", setting, self.server) {
      $0.method = "Unary"
      $0.streamType = .unary
      $0.timeoutMs = 20_000
      $0.requestMessages = [message]
    } check: { result in
      try result.expectNoError()
      let timeout = result.payloads[0].requestInfo.timeoutMs
      guard (10_000...20_000).contains(timeout) else {
        throw Mismatch(description: "the server saw a timeout of \(timeout) ms")
      }
    }
  }

  func largeMessages(_ setting: CaseSetting) -> ConformanceCase {
    var definition = Self.unaryDefinition
    // Larger than the flow-control windows of HTTP/2. Smaller in JSON, which takes a debug build a second for each 100
    // kB.
    let size = setting.codec == .json ? 10_000 : 100_000
    definition.responseData = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 8) })
    let message = Self.any(
      Connectrpc_Conformance_V1_UnaryRequest.with {
        $0.responseDefinition = definition
        $0.requestData = Data(repeating: 9, count: size)
      }
    )
    return ConformanceCase("large messages", setting, self.server) {
      $0.method = "Unary"
      $0.streamType = .unary
      $0.requestMessages = [message]
    } check: { result in
      try result.expectNoError()
      try expect(result.payloads.map(\.data), [definition.responseData], "the data")
    }
  }

  // MARK: Checks

  func checkError(_ result: ResponseResult, requests: [Google_Protobuf_Any]) throws {
    try result.expectError(Self.error.code, message: Self.error.message)
    try result.expectTrailer("x-custom-trailer", ["bing"])
    try expect(result.error.details.count, 2, "the number of details")
    try result.error.details[0].expectSame(as: Self.error.details[0])
    let info = try Payload.RequestInfo(unpackingAny: result.error.details[1])
    try info.expectRequests(requests)
    // Without a message between them, headers may be reported as trailers and vice versa.
    let metadata = result.responseHeaders + result.responseTrailers
    try expect(metadata.first { $0.name == "x-custom-header" }?.value, ["foo", "bar"], "the header")
  }

  func expectCompression(_ setting: CaseSetting, _ info: Payload.RequestInfo, isUnary: Bool) throws {
    let name =
      switch setting.networkProtocol {
      case .connect: isUnary ? "content-encoding" : "connect-content-encoding"
      default: "grpc-encoding"
      }
    let seen = info.header(name).filter { $0 != "identity" }
    try expect(seen, Self.encoding(setting).map { [$0] } ?? [], "the request's \(name)")
  }

  /// The name of the compression; nil if there is none.
  private static func encoding(_ setting: CaseSetting) -> String? {
    switch setting.compression {
    case .gzip: "gzip"
    case .deflate: "deflate"
    case .br: "br"
    case .zstd: "zstd"
    case .snappy: "snappy"
    default: nil
    }
  }

  static func clientMessages(_ definition: UnaryDefinition) -> [Google_Protobuf_Any] {
    (0..<3).map { index in
      Self.any(
        Connectrpc_Conformance_V1_ClientStreamRequest.with {
          if index == 0 { $0.responseDefinition = definition }
          $0.requestData = Data("message \(index)".utf8)
        }
      )
    }
  }
}
