internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf

extension CaseLibrary {
  static let streamDefinition = StreamDefinition.with {
    $0.responseHeaders = [Header("x-custom-header", "foo", "bar")]
    $0.responseTrailers = [Header("x-custom-trailer", "bing")]
    $0.responseData = [Data("first".utf8), Data("second".utf8)]
  }

  static func serverMessage(_ definition: StreamDefinition) -> Google_Protobuf_Any {
    self.any(Connectrpc_Conformance_V1_ServerStreamRequest.with { $0.responseDefinition = definition })
  }

  static func bidiMessages(
    _ definition: StreamDefinition,
    isFullDuplex: Bool,
    count: Int = 2
  ) -> [Google_Protobuf_Any] {
    (0..<count).map { index in
      Self.any(
        Connectrpc_Conformance_V1_BidiStreamRequest.with {
          if index == 0 {
            $0.responseDefinition = definition
            $0.fullDuplex = isFullDuplex
          }
          $0.requestData = Data("message \(index)".utf8)
        }
      )
    }
  }

  func serverStream(_ setting: CaseSetting) -> ConformanceCase {
    let message = Self.serverMessage(Self.streamDefinition)
    return ConformanceCase("server stream", setting, self.server) {
      $0.method = "ServerStream"
      $0.streamType = .serverStream
      $0.requestMessages = [message]
    } check: { result in
      try result.expectNoError()
      try result.expectPayloads(["first", "second"])
      try result.expectHeader("x-custom-header", ["foo", "bar"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      try result.payloads[0].requestInfo.expectRequests([message])
      try expect(result.payloads[1].hasRequestInfo, false, "a request info in the second payload")
    }
  }

  func serverStreamError(_ setting: CaseSetting) -> ConformanceCase {
    var definition = Self.streamDefinition
    definition.error = Self.error
    return ConformanceCase("server stream with an error at its end", setting, self.server) {
      $0.method = "ServerStream"
      $0.streamType = .serverStream
      $0.requestMessages = [Self.serverMessage(definition)]
    } check: { result in
      try result.expectPayloads(["first", "second"])
      try result.expectError(Self.error.code, message: Self.error.message)
      try expect(result.httpStatusCode, 200, "the HTTP status")
      try result.expectHeader("x-custom-header", ["foo", "bar"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      try expect(result.error.details.count, 1, "the number of details")
      try result.error.details[0].expectSame(as: Self.error.details[0])
    }
  }

  func halfDuplex(_ setting: CaseSetting) -> ConformanceCase {
    let messages = Self.bidiMessages(Self.streamDefinition, isFullDuplex: false, count: 3)
    return ConformanceCase("half-duplex stream", setting, self.server) {
      $0.method = "BidiStream"
      $0.streamType = .halfDuplexBidiStream
      $0.requestMessages = messages
      $0.requestDelayMs = 2
    } check: { result in
      try result.expectNoError()
      try result.expectPayloads(["first", "second"])
      try result.expectHeader("x-custom-header", ["foo", "bar"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      try result.payloads[0].requestInfo.expectRequests(messages)
    }
  }

  func fullDuplex(_ setting: CaseSetting) -> ConformanceCase {
    var definition = Self.streamDefinition
    // The server has one response more than the client sends messages.
    definition.responseData.append(Data("third".utf8))
    let messages = Self.bidiMessages(definition, isFullDuplex: true)
    return ConformanceCase("full-duplex stream", setting, self.server) {
      $0.method = "BidiStream"
      $0.streamType = .fullDuplexBidiStream
      $0.requestMessages = messages
      $0.requestDelayMs = 2
    } check: { result in
      try result.expectNoError()
      try result.expectPayloads(["first", "second", "third"])
      try result.expectHeader("x-custom-header", ["foo", "bar"])
      try result.expectTrailer("x-custom-trailer", ["bing"])
      try result.payloads[0].requestInfo.expectRequests([messages[0]])
      try result.payloads[1].requestInfo.expectRequests([messages[1]])
      try expect(result.numUnsentRequests, 0, "the number of unsent requests")
    }
  }

  /// The server answers two messages, fails at the third, and never reads the fourth and fifth.
  func fullDuplexError(_ setting: CaseSetting) -> ConformanceCase {
    var definition = Self.streamDefinition
    definition.error = Self.error
    let messages = Self.bidiMessages(definition, isFullDuplex: true, count: 5)
    return ConformanceCase("full-duplex stream that fails", setting, self.server) {
      $0.method = "BidiStream"
      $0.streamType = .fullDuplexBidiStream
      $0.requestMessages = messages
    } check: { result in
      try result.expectPayloads(["first", "second"])
      try result.expectError(Self.error.code, message: Self.error.message)
      try expect(result.httpStatusCode, 200, "the HTTP status")
      try result.expectTrailer("x-custom-trailer", ["bing"])
      try expect(result.numUnsentRequests, 2, "the number of unsent requests")
    }
  }
}
