internal import ConformanceMessages
internal import Foundation
internal import SwiftProtobuf
internal import XCTest

/// The responses of ``RawResponseTests`` for gRPC and gRPC-Web, to calls of every kind.
final class RawGRPCResponseTests: XCTestCase {
  /// A response of either protocol, and what a call is to make of it.
  private struct Answer {
    var name: String
    var status: UInt32 = 200
    /// Beside the content-type, unless they have one.
    var headers: [Header] = []
    var items: [StreamItem] = []
    /// Of gRPC-Web in the body.
    var trailers: [Header] = []
    /// The end where there has to be one response, and that of a stream if it is another.
    var end: ExpectedEnd
    var streamEnd: ExpectedEnd?
    /// The messages that a stream delivers.
    var payloads = 0
    var expectedTrailers: [Header] = []
    var compression = Connectrpc_Conformance_V1_Compression.identity

    func raw(_ setting: CaseSetting) -> RawResponse {
      let isWeb = setting.networkProtocol == .grpcWeb
      return .with {
        $0.statusCode = self.status
        $0.headers = self.headers
        if !self.headers.contains(where: { $0.name == "content-type" }) {
          let type = isWeb ? "application/grpc-web+proto" : "application/grpc+proto"
          $0.headers.append(Header("content-type", type))
        }
        $0.stream.items = self.items
        if !isWeb {
          $0.trailers = self.trailers
        } else if !self.trailers.isEmpty {
          $0.stream.items.append(.text(self.block, flags: 0x80))
        }
      }
    }

    private var block: String {
      self.trailers.flatMap { header in header.value.map { "\(header.name): \($0)\r\n" } }.joined()
    }
  }

  private static let settings = CaseSetting.simple.filter { $0.networkProtocol != .connect }

  private func run(_ answers: [Answer], _ settings: [CaseSetting] = RawGRPCResponseTests.settings)
    async throws
  {
    let server = try await ConformanceServer.shared()
    var cases: [ConformanceCase] = []
    for setting in settings {
      for answer in answers {
        var setting = setting
        setting.compression = answer.compression
        for kind in CallKind.all(setting) {
          let end = kind.hasOneResponse ? answer.end : answer.streamEnd ?? answer.end
          cases.append(
            kind.rawCase(answer.name, setting, server, answer.raw(setting)) { result in
              try end.check(result, kind, payloads: answer.payloads)
              for trailer in answer.expectedTrailers {
                try result.expectTrailer(trailer.name, trailer.value)
              }
            }
          )
        }
      }
    }
    try await ConformanceCase.runInBothForms(cases)
  }

  private static let message = Connectrpc_Conformance_V1_UnaryResponse.with {
    $0.payload.data = Data("test response".utf8)
  }
  private static let one = [StreamItem.message(message)]
  private static let ok = [Header("grpc-status", "0"), Header("x-custom-trailer", "bing", "a, b")]
  private static let okTrailers = [Header("x-custom-trailer", "bing", "a, b")]
  private static let failed = [Header("grpc-status", "9"), Header("grpc-message", "it%20is%20%C3%BC%zz")]
  private static let failure = ExpectedEnd.error(.failedPrecondition, "it is ü%zz")

  func testNumbersOfMessages() async throws {
    let unimplemented = ExpectedEnd.error(.unimplemented, status: nil)
    try await self.run([
      Answer(
        name: "one message",
        items: Self.one,
        trailers: Self.ok,
        end: .ok,
        payloads: 1,
        expectedTrailers: Self.okTrailers
      ),
      Answer(name: "no message", trailers: Self.ok, end: unimplemented, streamEnd: .ok),
      Answer(
        name: "two messages",
        items: Self.one + Self.one,
        trailers: Self.ok,
        end: unimplemented,
        streamEnd: .ok,
        payloads: 2
      ),
    ])
  }

  func testStatuses() async throws {
    let other = [Header("x-custom-trailer", "bing")]
    try await self.run([
      Answer(name: "an error", trailers: Self.failed, end: Self.failure),
      Answer(
        name: "an error after a message",
        items: Self.one,
        trailers: Self.failed + Self.okTrailers,
        end: Self.failure,
        payloads: 1,
        expectedTrailers: Self.okTrailers
      ),
      Answer(name: "trailers only", headers: Self.failed, end: Self.failure),
      Answer(
        name: "trailers only that say ok",
        headers: Self.ok,
        end: .error(.unimplemented, status: nil),
        streamEnd: .ok
      ),
      Answer(name: "nothing", end: .error(.internal)),
      Answer(name: "no trailers", items: Self.one, end: .error(.internal), payloads: 1),
      Answer(name: "no status", items: Self.one, trailers: other, end: .error(.unknown), payloads: 1),
      Answer(
        name: "a status in headers with a body",
        headers: Self.ok,
        items: Self.one,
        end: .error(.internal),
        payloads: 1
      ),
      Answer(
        name: "an error in headers with a body",
        headers: Self.failed,
        items: Self.one,
        end: .error(.internal),
        payloads: 1
      ),
      Answer(
        name: "an error in headers and another status in trailers",
        headers: Self.failed,
        items: Self.one,
        trailers: Self.ok,
        end: .ok,
        payloads: 1
      ),
      Answer(
        name: "an unknown status",
        items: Self.one,
        trailers: [Header("grpc-status", "42"), Header("grpc-message", "later")],
        end: .error(.unknown, "later"),
        payloads: 1
      ),
      Answer(
        name: "details with another code",
        // google.rpc.Status: code 10, "inner".
        trailers: Self.failed + [Header("grpc-status-details-bin", "CAoSBWlubmVy")],
        end: .error(.aborted, "inner")
      ),
    ])
  }

  func testHTTPStatuses() async throws {
    let statuses: [(UInt32, Connectrpc_Conformance_V1_Code)] = [
      (400, .internal), (401, .unauthenticated), (403, .permissionDenied), (404, .unimplemented),
      (408, .unknown), (418, .unknown), (429, .unavailable), (500, .unknown), (502, .unavailable),
      (503, .unavailable), (504, .unavailable), (204, .unknown), (301, .unknown),
    ]
    try await self.run(
      statuses.map { status, code in
        Answer(
          name: "HTTP status \(status)",
          status: status,
          headers: [Header("content-type", "text/html")],
          end: .error(code, status: Int32(status))
        )
      } + [
        Answer(
          name: "HTTP status 503 with a status of its own",
          status: 503,
          headers: Self.failed,
          end: .error(.failedPrecondition, "it is ü%zz", status: 503)
        )
      ]
    )
  }

  func testHeads() async throws {
    func answer(_ name: String, _ header: Header, _ end: ExpectedEnd, payloads: Int = 0) -> Answer {
      Answer(
        name: name,
        headers: [header],
        items: Self.one,
        trailers: Self.ok,
        end: end,
        payloads: payloads
      )
    }
    try await self.run([
      answer("foreign content", Header("content-type", "text/html"), .error(.unknown)),
      answer("Connect", Header("content-type", "application/connect+proto"), .error(.unknown)),
      answer("unknown encoding", Header("grpc-encoding", "lz99"), .error(.internal)),
      answer("encoding that is none", Header("grpc-encoding", "identity"), .ok, payloads: 1),
    ])
    for (networkProtocol, type) in [
      (Connectrpc_Conformance_V1_Protocol.grpc, "application/grpc"), (.grpcWeb, "application/grpc-web"),
    ] {
      try await self.run(
        [
          answer("another codec", Header("content-type", type + "+json"), .error(.internal)),
          answer("no codec", Header("content-type", type), .ok, payloads: 1),
          answer("a parameter", Header("content-type", type + "+proto; v=1"), .ok, payloads: 1),
        ],
        Self.settings.filter { $0.networkProtocol == networkProtocol }
      )
    }
  }

  func testEnvelopes() async throws {
    let gzip = Header("grpc-encoding", "gzip")
    let compressed = StreamItem.message(Self.message, flags: 1, compression: .gzip)
    var cut = StreamItem.message(Self.message)
    cut.length = 1000
    try await self.run([
      Answer(
        name: "a message that is cut short",
        items: Self.one + [cut],
        end: .error(.internal),
        payloads: 1
      ),
      Answer(
        name: "unknown flags",
        items: Self.one + [.message(Self.message, flags: 2)],
        trailers: Self.ok,
        end: .error(.internal),
        payloads: 1
      ),
      Answer(
        name: "compressed messages among others",
        headers: [gzip],
        items: [compressed],
        trailers: Self.ok,
        end: .ok,
        payloads: 1,
        compression: .gzip
      ),
      Answer(
        name: "a compressed message without an encoding",
        items: [compressed],
        trailers: Self.ok,
        end: .error(.internal),
        compression: .gzip
      ),
      Answer(
        name: "an encoding that was not asked for",
        headers: [gzip],
        items: [compressed],
        trailers: Self.ok,
        end: .error(.internal)
      ),
      Answer(
        name: "a message that does not decompress",
        headers: [gzip],
        items: [.text("this is not gzip", flags: 1)],
        trailers: Self.ok,
        end: .error(.internal),
        compression: .gzip
      ),
    ])
  }

  // MARK: gRPC-Web

  func testTrailersInTheBody() async throws {
    let gzip = Header("grpc-encoding", "gzip")
    let failure = "GRPC-Status:9\r\nGrpc-Message: it%20is%20%C3%BC%zz\r\n"
    func answer(
      _ name: String,
      headers: [Header] = [],
      _ trailers: StreamItem,
      _ end: ExpectedEnd,
      _ expected: [Header] = [],
      compression: Connectrpc_Conformance_V1_Compression = .identity
    ) -> Answer {
      Answer(
        name: name,
        headers: headers,
        items: Self.one + [trailers],
        end: end,
        payloads: 1,
        expectedTrailers: expected,
        compression: compression
      )
    }
    try await self.run(
      [
        answer(
          "compressed trailers",
          headers: [gzip],
          .text("grpc-status: 0\r\nx-custom-trailer: bing\r\n", flags: 0x81, compression: .gzip),
          .ok,
          [Header("x-custom-trailer", "bing")],
          compression: .gzip
        ),
        answer(
          "compressed trailers with an error",
          headers: [gzip],
          .text(failure, flags: 0x81, compression: .gzip),
          Self.failure,
          compression: .gzip
        ),
        answer(
          "compressed trailers without an encoding",
          .text(failure, flags: 0x81, compression: .gzip),
          .error(.internal),
          compression: .gzip
        ),
        answer("names in mixed case", .text(failure, flags: 0x80), Self.failure),
        answer(
          "a name several times",
          .text(
            "X-Custom-Trailer: bing\r\ngrpc-status: 0\r\nx-custom-trailer:a:b, c\r\nX-CUSTOM-TRAILER: d\r\n",
            flags: 0x80
          ),
          .ok,
          [Header("x-custom-trailer", "bing", "a:b, c", "d")]
        ),
        answer(
          "a line that is no field",
          .text("grpc-status: 0\r\nwhat\r\n", flags: 0x80),
          .error(.internal)
        ),
        Answer(
          name: "a message behind the trailers",
          items: Self.one + [.text("grpc-status: 0\r\n", flags: 0x80)] + Self.one,
          end: .error(.internal),
          payloads: 1
        ),
      ],
      Self.settings.filter { $0.networkProtocol == .grpcWeb }
    )
  }
}
