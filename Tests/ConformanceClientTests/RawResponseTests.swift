internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

/// Responses that the server makes byte by byte, as the suite's cases of bad servers do.
final class RawResponseTests: XCTestCase {
  private static let payload = CaseLibrary.any(
    Connectrpc_Conformance_V1_UnaryResponse.with { $0.payload.data = Data("test response".utf8) }
  )

  private static let settings = CaseSetting.simple.filter { $0.networkProtocol == .connect }

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
          CallKind.unary.rawCase("HTTP status \(status)", setting, server, raw) { result in
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
        CallKind.unary.rawCase("a raw answer", setting, server, answer) { result in
          try result.expectNoError()
          try result.expectPayloads(["test response"])
          try result.expectTrailer("x-custom-trailer", ["bing"])
        }
      )
      var foreign = answer
      foreign.headers[0].value = ["image/jpeg"]
      cases.append(
        CallKind.unary.rawCase("foreign content", setting, server, foreign) { try $0.expectError(.unknown) }
      )
      var encoded = answer
      encoded.headers.append(Header("content-encoding", "foo"))
      cases.append(
        CallKind.unary.rawCase("unknown encoding", setting, server, encoded) { try $0.expectError(.internal) }
      )
      var empty = answer
      empty.unary.text = setting.codec == .proto ? "" : "{}"
      cases.append(
        CallKind.unary.rawCase("no payload", setting, server, empty) { result in
          try result.expectNoError()
          try result.expectPayloads([""])
        }
      )
    }
    try await ConformanceCase.run(cases)
  }

  /// Where the body does not say the code, the HTTP status does; the message is kept.
  func testConnectErrorBodies() async throws {
    let server = try await ConformanceServer.shared()
    let bodies: [(String, String, ExpectedEnd)] = [
      ("a code", #"{"code": "aborted", "message": "oops"}"#, .error(.aborted, "oops", status: 403)),
      ("null", #"{"code": null, "message": "oops"}"#, .error(.permissionDenied, "oops", status: 403)),
      ("none", #"{"message": "oops"}"#, .error(.permissionDenied, "oops", status: 403)),
      ("unknown", #"{"code": "odd", "message": "oops"}"#, .error(.permissionDenied, "oops", status: 403)),
      ("a number", #"{"code": 5, "message": "oops"}"#, .error(.permissionDenied, "oops", status: 403)),
      ("no JSON", "oops", .error(.permissionDenied, status: 403)),
      ("no object", "[]", .error(.permissionDenied, status: 403)),
      ("nothing", "", .error(.permissionDenied, status: 403)),
      (
        "fields that are not ours", #"{"code": "aborted", "message": "oops", "x": [{}], "debug": 1}"#,
        .error(.aborted, "oops", status: 403)
      ),
    ]
    var cases: [ConformanceCase] = []
    for setting in Self.settings {
      for isCompressed in [false, true] {
        var setting = setting
        setting.compression = isCompressed ? .gzip : .identity
        for (name, text, end) in bodies where !(isCompressed && text.isEmpty) {
          let raw = RawResponse.with {
            $0.statusCode = 403
            $0.headers = [Header("content-type", "application/json"), Header("x-custom-header", "foo")]
            if isCompressed { $0.headers.append(Header("content-encoding", "gzip")) }
            $0.unary.text = text
            $0.unary.compression = isCompressed ? .gzip : .unspecified
          }
          for kind in CallKind.all(setting) {
            cases.append(
              kind.rawCase("error body with \(name)", setting, server, raw) { result in
                try end.check(result, kind, payloads: 0)
                try result.expectHeader("x-custom-header", ["foo"])
              }
            )
          }
        }
      }
    }
    try await ConformanceCase.run(cases)
  }

  func testErrorDetails() async throws {
    let server = try await ConformanceServer.shared()
    // A Header with the name "x"; the first value is padded, the second need not be, the third is no base64.
    let details =
      #"[{"type": "connectrpc.conformance.v1.Header", "value": "CgF4EgA="},"#
      + #" {"type": "connectrpc.conformance.v1.Header", "value": "CgF4EgA"},"#
      + #" {"type": "a.B", "value": "***"}]"#
    let raw = RawResponse.with {
      $0.statusCode = 400
      $0.headers = [Header("content-type", "application/json")]
      $0.unary.text = #"{"code": "aborted", "details": \#(details)}"#
    }
    try await ConformanceCase.run(
      Self.settings.map { setting in
        CallKind.unary.rawCase("error details", setting, server, raw) { result in
          try result.expectError(.aborted)
          let detail = CaseLibrary.any(Header("x", ""))
          try expect(result.error.details.count, 2, "the number of details")
          for received in result.error.details { try received.expectSame(as: detail) }
        }
      }
    )
  }

  // MARK: Streams

  private struct Stream {
    var name: String
    var headers: [Header] = []
    var items: [StreamItem] = []
    /// What follows the items, in no envelope.
    var rest = Data()
    /// The end where there has to be one response, and that of a stream if it is another.
    var end: ExpectedEnd
    var streamEnd: ExpectedEnd?
    var payloads = 0
    var trailers: [Header] = []
    var compression = Connectrpc_Conformance_V1_Compression.identity

    var raw: RawResponse {
      .with {
        $0.statusCode = 200
        $0.headers = [Header("content-type", "application/connect+proto")] + self.headers
        if self.rest.isEmpty { $0.stream.items = self.items } else { $0.unary.binary = self.body + self.rest }
      }
    }

    private var body: Data {
      self.items.reduce(into: Data()) { body, item in
        let message = item.payload.binaryMessage.value
        body.append(UInt8(item.flags))
        withUnsafeBytes(of: UInt32(message.count).bigEndian) { body.append(contentsOf: $0) }
        body.append(message)
      }
    }
  }

  private func run(_ streams: [Stream]) async throws {
    let server = try await ConformanceServer.shared()
    var cases: [ConformanceCase] = []
    for setting in Self.settings {
      for stream in streams {
        var setting = setting
        setting.compression = stream.compression
        for kind in CallKind.streams(setting) {
          let end = kind.hasOneResponse ? stream.end : stream.streamEnd ?? stream.end
          cases.append(
            kind.rawCase(stream.name, setting, server, stream.raw) { result in
              try end.check(result, kind, payloads: stream.payloads)
              for trailer in stream.trailers { try result.expectTrailer(trailer.name, trailer.value) }
            }
          )
        }
      }
    }
    try await ConformanceCase.runInBothForms(cases)
  }

  private static let message = Connectrpc_Conformance_V1_ServerStreamResponse.with {
    $0.payload.data = Data("first".utf8)
  }
  private static let one = [StreamItem.message(message)]
  private static let success = StreamItem.text("{}", flags: 2)

  func testConnectStreams() async throws {
    let metadata = #"{"metadata": {"X-Custom-Trailer": ["bing", "a, b"]}}"#
    let failed = #"{"error": {"code": "out_of_range", "message": "oops"}}"#
    try await self.run([
      Stream(name: "no end", items: Self.one, end: .error(.internal), payloads: 1),
      Stream(name: "nothing", end: .error(.internal)),
      Stream(
        name: "a good stream",
        items: Self.one + [.text(metadata, flags: 2)],
        end: .ok,
        payloads: 1,
        trailers: [Header("x-custom-trailer", "bing", "a, b")]
      ),
      Stream(
        name: "a stream that fails",
        items: Self.one + [.text(failed, flags: 2)],
        end: .error(.outOfRange, "oops"),
        payloads: 1
      ),
      Stream(
        name: "no message",
        items: [Self.success],
        end: .error(.unimplemented, status: nil),
        streamEnd: .ok
      ),
      Stream(
        name: "two messages",
        items: Self.one + Self.one + [Self.success],
        end: .error(.unimplemented, status: nil),
        streamEnd: .ok,
        payloads: 2
      ),
    ])
  }

  func testEndsOfConnectStreams() async throws {
    func stream(_ name: String, _ end: String, _ expected: ExpectedEnd) -> Stream {
      Stream(name: name, items: Self.one + [.text(end, flags: 2)], end: expected, payloads: 1)
    }
    let unknown = ExpectedEnd.error(.unknown, "oops")
    try await self.run([
      stream("error null", #"{"error": null}"#, .ok),
      stream("code null", #"{"error": {"code": null, "message": "oops"}}"#, unknown),
      stream("no code", #"{"error": {"message": "oops"}}"#, unknown),
      stream("a code that is none", #"{"error": {"code": "odd", "message": "oops"}}"#, unknown),
      stream("no JSON", "oops", .error(.internal)),
      Stream(
        name: "a message behind the end",
        items: Self.one + [Self.success] + Self.one,
        end: .error(.internal),
        payloads: 1
      ),
    ])
  }

  func testCompressedConnectStreams() async throws {
    let gzip = Header("connect-content-encoding", "gzip")
    let failed = #"{"error": {"code": "out_of_range", "message": "oops"}}"#
    let compressed = StreamItem.message(Self.message, flags: 1, compression: .gzip)
    try await self.run([
      Stream(
        name: "a compressed end",
        headers: [gzip],
        items: Self.one + [.text("{}", flags: 3, compression: .gzip)],
        end: .ok,
        payloads: 1,
        compression: .gzip
      ),
      Stream(
        name: "a compressed end with an error",
        headers: [gzip],
        items: [compressed, .text(failed, flags: 3, compression: .gzip)],
        end: .error(.outOfRange, "oops"),
        payloads: 1,
        compression: .gzip
      ),
      Stream(
        name: "a compressed end without an encoding",
        items: Self.one + [.text(failed, flags: 3, compression: .gzip)],
        end: .error(.internal),
        payloads: 1,
        compression: .gzip
      ),
      Stream(
        name: "a compressed message without an encoding",
        items: [compressed, Self.success],
        end: .error(.internal),
        compression: .gzip
      ),
      Stream(
        name: "an encoding that was not asked for",
        headers: [gzip],
        items: [compressed, Self.success],
        end: .error(.internal)
      ),
    ])
  }

  func testConnectStreamsThatAreCutShort() async throws {
    var cut = StreamItem.message(Self.message)
    cut.length = 1000
    var end = Self.success
    end.length = 1000
    try await self.run([
      Stream(name: "half a message", items: Self.one + [cut], end: .error(.internal), payloads: 1),
      Stream(name: "half an end", items: Self.one + [end], end: .error(.internal), payloads: 1),
      Stream(
        name: "half a prefix",
        items: Self.one,
        rest: Data([0, 0, 0]),
        end: .error(.internal),
        payloads: 1
      ),
      Stream(
        name: "unknown flags",
        items: Self.one + [.message(Self.message, flags: 4)],
        end: .error(.internal),
        payloads: 1
      ),
    ])
  }
}
