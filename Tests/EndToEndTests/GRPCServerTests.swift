internal import Connect
internal import ConnectNIO
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// gRPC with the server of grpcio: in cleartext, over TLS with and without a client certificate, over unix
/// sockets with a path and with an abstract name.
final class GRPCServerTests: XCTestCase {
  // MARK: Calls

  func testUnary() async throws {
    for setting in GRPCSetting.allCases {
      try await setting.withClient { client in
        let response = await client.unary(
          TestMethods.echo,
          .with { $0.payload = .varied },
          options: CallOptions(headers: ["x-one": ["a", "b, c"], "x-two-bin": ["AP8"]])
        )
        XCTAssertEqual(response.code, .ok, "\(setting): \(String(describing: response.error))")
        XCTAssertEqual(response.message?.payload, .varied, "\(setting)")
        XCTAssertEqual(response.message?.seen.values("x-one"), ["a", "b, c"], "\(setting)")
        XCTAssertEqual(response.message?.seen.values("x-two-bin"), ["\u{0}\u{ff}"], "\(setting)")
        XCTAssertEqual(response.message?.seen.hasTimeoutMs, true, "\(setting)")
      }
    }
  }

  /// The server's certificate is for localhost. Without TLS nothing is checked.
  func testAuthority() async throws {
    for setting in GRPCSetting.allCases {
      try await setting.withClient { client in
        for authority in ["localhost:8443", "other.example"] {
          let response = await client.unary(
            TestMethods.echo,
            .with { $0.payload.small = 7 },
            options: CallOptions(authority: authority)
          )
          let isRefused = authority == "other.example" && [.tls, .mutual].contains(setting)
          XCTAssertEqual(
            response.code,
            isRefused ? .unavailable : .ok,
            "\(setting), \(authority): \(response)"
          )
          let message = response.error?.message ?? ""
          if isRefused { XCTAssertTrue(message.contains("its authority is 'other.example'"), message) }
        }
      }
    }
  }

  func testServerStream() async throws {
    for setting in GRPCSetting.allCases {
      try await setting.withClient { client in
        let stream = client.serverStream(
          TestMethods.count,
          .with {
            $0.from = 7
            $0.instruction.messageCount = 50
          }
        )
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(setting): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.map(\.number), Array(7..<57), "\(setting)")
        let none = await client.serverStream(TestMethods.count, CountRequest()).results.collect()
        XCTAssertEqual(none.code, .ok, "\(setting): \(String(describing: none.error))")
        XCTAssertEqual(none.messages.count, 0, "\(setting)")
      }
    }
  }

  func testClientStream() async throws {
    for setting in GRPCSetting.allCases {
      try await setting.withClient { client in
        let stream = client.clientStream(TestMethods.sum)
        for number in 1...100 { try await stream.send(.with { $0.number = Int64(number) }) }
        let response = await stream.closeAndReceive()
        XCTAssertEqual(response.message?.sum, 5050, "\(setting): \(String(describing: response.error))")
        let none = await client.clientStream(TestMethods.sum).closeAndReceive()
        XCTAssertEqual(none.message?.sum, 0, "\(setting): \(String(describing: none.error))")
      }
    }
  }

  func testFullDuplexRoundTrips() async throws {
    for setting in GRPCSetting.allCases {
      try await setting.withClient {
        try await $0.expectRoundTrips(setting == .plain ? 1000 : 100, "\(setting)")
      }
    }
  }

  /// The server answers and ends while the client still has messages to send.
  func testServerFinishesFirst() async throws {
    try await GRPCSetting.plain.withClient { client in
      let stream = client.clientStream(TestMethods.sum)
      try await stream.send(
        .with {
          $0.number = 3
          $0.instruction.finishAfter = 1
        }
      )
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.message?.sum, 3, "\(String(describing: response.error))")
    }
  }

  func testManyCallsAtOnce() async throws {
    try await GRPCSetting.plain.withClient { client in
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for index in 0..<300 {
          group.addTask {
            let response = await client.unary(TestMethods.echo, .with { $0.payload.small = Int32(index) })
            return try response.get().payload.small == Int32(index)
          }
        }
        for try await isRight in group { XCTAssertTrue(isRight) }
      }
    }
  }

  func testLargeMessages() async throws {
    for setting in [GRPCSetting.plain, .tls] {
      try await setting.withClient { client in
        let text = String(repeating: "0123456789abcdef", count: 100_000)
        let response = await client.unary(
          TestMethods.echo,
          .with {
            $0.payload.text = text
            $0.instruction.responseBytes = 1_000_000
          }
        )
        XCTAssertTrue(response.message?.payload.text == text, "\(String(describing: response.error))")
        XCTAssertEqual(response.message?.padding.count, 1_000_000, "\(setting)")
      }
    }
  }

  func testFlood() async throws {
    try await GRPCSetting.plain.withClient { client in
      let total = 32 << 20
      var received = 0
      for try await message in client.serverStream(TestMethods.flood, .with { $0.totalBytes = UInt64(total) })
        .messages
      {
        XCTAssertEqual(message.offset, UInt64(received))
        received += message.data.count
      }
      XCTAssertEqual(received, total)
    }
  }

  // MARK: Metadata and errors

  func testMetadata() async throws {
    let instruction = Instruction.with {
      $0.headers = [.with { ($0.name, $0.values) = ("x-head", ["1", "2, 3"]) }]
      $0.trailers = [
        .with { ($0.name, $0.values) = ("x-trail", ["4", "5"]) },
        .with { ($0.name, $0.values) = ("x-trail-bin", ["\u{0}\u{ff}"]) },
      ]
      $0.messageCount = 1
    }
    try await GRPCSetting.plain.withClient { client in
      let unary = await client.unary(TestMethods.echo, .with { $0.instruction = instruction })
      XCTAssertEqual(unary.headers["x-head"], ["1", "2, 3"])
      XCTAssertEqual(unary.trailers["x-trail"], ["4", "5"])
      XCTAssertEqual(unary.trailers["x-trail-bin"].first?.replacing("=", with: ""), "AP8")
      let stream = await client.serverStream(TestMethods.count, .with { $0.instruction = instruction })
        .results.collect()
      XCTAssertEqual(stream.headers.first?["x-head"], ["1", "2, 3"])
      XCTAssertEqual(stream.trailers["x-trail"], ["4", "5"])
      XCTAssertEqual(stream.trailers["grpc-status"], [])
    }
  }

  func testErrorsOfEachCode() async throws {
    try await GRPCSetting.plain.withClient { client in
      for number in 1...16 {
        let response = await client.unary(
          TestMethods.echo,
          .with {
            $0.instruction.failure.code = Connect_Test_V1_Code(rawValue: number) ?? .unspecified
            $0.instruction.failure.message = "100% größer\r\n\tals 請"
          }
        )
        XCTAssertEqual(response.code.rawValue, number)
        XCTAssertEqual(response.error?.message, "100% größer\r\n\tals 請")
      }
    }
  }

  /// Also of a call that fails before the headers (trailers only), and of a stream after some messages.
  func testDetailsByteForByte() async throws {
    let details = [
      try Google_Protobuf_Any(message: ErrorInfo.with { $0.reason = "häuser" }),
      try Google_Protobuf_Any(message: Payload.varied),
    ]
    let failure = Failure.with {
      $0.code = .aborted
      $0.message = "no ß"
      $0.details = details
      $0.afterMessages = 2
    }
    func check(_ error: ConnectError?, _ what: String) {
      XCTAssertEqual(error?.code, .aborted, "\(what): \(String(describing: error))")
      XCTAssertEqual(error?.message, "no ß", what)
      XCTAssertEqual(
        error?.details.map(\.type),
        details.map { String($0.typeURL.split(separator: "/")[1]) },
        what
      )
      XCTAssertEqual(
        error?.details.map { Array($0.value.readableBytesView) },
        details.map { Array($0.value) },
        what
      )
    }
    for setting in GRPCSetting.allCases {
      try await setting.withClient { client in
        for headers in [[], [HeaderMessage.with { ($0.name, $0.values) = ("x-head", ["1"]) }]] {
          let instruction = Instruction.with {
            $0.headers = headers
            $0.trailers = [.with { ($0.name, $0.values) = ("x-trail", ["2"]) }]
            $0.failure = failure
            $0.messageCount = 5
          }
          let unary = await client.unary(TestMethods.echo, .with { $0.instruction = instruction })
          check(unary.error, "\(setting), unary")
          XCTAssertEqual(unary.error?.metadata["x-trail"], ["2"], "\(setting)")
          let stream = await client.serverStream(TestMethods.count, .with { $0.instruction = instruction })
            .results.collect()
          check(stream.error, "\(setting), stream")
          XCTAssertEqual(stream.messages.count, 2, "\(setting)")
          XCTAssertEqual(stream.trailers["x-trail"], ["2"], "\(setting)")
        }
      }
    }
  }

  func testUnimplemented() async throws {
    try await GRPCSetting.plain.withClient { client in
      let expected = ExpectedError(.unimplemented)
      try await client.expectFailure(TestMethods.unimplemented, expected, "method")
      try await client.expectFailure(unaryMethod("/no.such/Method"), expected, "service")
      try await client.expectStreamFailure(streamMethod("/no.such/Method"), expected, "service")
    }
  }

  // MARK: Deadlines

  func testDeadlines() async throws {
    let slow = Instruction.with {
      $0.delayMs = 60_000
      $0.messageCount = 1
    }
    for setting in GRPCSetting.allCases {
      try await setting.withClient { client in
        let options = CallOptions(timeout: .milliseconds(100))
        let unary = await client.unary(TestMethods.echo, .with { $0.instruction = slow }, options: options)
        XCTAssertEqual(unary.code, .deadlineExceeded, "\(setting): \(String(describing: unary.error))")
        let stream = await client.serverStream(
          TestMethods.count,
          .with { $0.instruction = slow },
          options: options
        ).results.collect()
        XCTAssertEqual(stream.code, .deadlineExceeded, "\(setting): \(String(describing: stream.error))")
        let long = CallOptions(timeout: .seconds(3600))
        let seen = await client.unary(TestMethods.echo, EchoRequest(), options: long).message?.seen
        XCTAssertGreaterThan(seen?.timeoutMs ?? 0, 3_000_000, "\(setting)")
        XCTAssertLessThanOrEqual(seen?.timeoutMs ?? .max, 3_600_000, "\(setting)")
      }
    }
  }

  // MARK: Compression

  func testGzip() async throws {
    try await GRPCSetting.plain.withClient(configure: {
      $1.compression.requests = GzipCompressionPool()
      $1.compression.minimumRequestBytes = 0
    }) { client in
      let text = String(repeating: "abc", count: 10_000)
      let options = CallOptions(headers: ["x-compress": ["1"]])
      let unary = await client.unary(TestMethods.echo, .with { $0.payload.text = text }, options: options)
      XCTAssertEqual(
        unary.message?.payload.text.utf8.count,
        text.utf8.count,
        "\(String(describing: unary.error))"
      )
      XCTAssertEqual(unary.headers["grpc-encoding"], ["gzip"])

      let stream = client.bidirectionalStream(TestMethods.converse, options: options)
      var answers = stream.messages.makeAsyncIterator()
      for _ in 0..<10 {
        try await stream.send(.with { $0.payload.text = text })
        let answer = try await answers.next()
        XCTAssertEqual(answer?.payload.text.utf8.count, text.utf8.count)
      }
      stream.finish()
      let end = try await answers.next()
      XCTAssertNil(end)
    }
  }

  // MARK: The transport

  func testMutualTLSWithoutACertificate() async throws {
    try await GRPCSetting.mutual.withClient(configure: { http, _ in http.tls.clientCertificate = nil }) {
      client in
      let response = await client.unary(TestMethods.echo, EchoRequest())
      XCTAssertEqual(response.code, .unavailable)
      XCTAssertTrue(
        response.error?.message?.contains("client certificate") == true,
        "\(String(describing: response.error))"
      )
    }
  }

  func testHTTP1OnlyIsRefused() async throws {
    try await GRPCSetting.plain.withClient(configure: { http, _ in http.version = .http1Only }) { client in
      try await client.expectFailure(
        TestMethods.echo,
        ExpectedError(.failedPrecondition, "needs HTTP/2"),
        "unary"
      )
      try await client.expectStreamFailure(
        TestMethods.count,
        ExpectedError(.failedPrecondition, "needs HTTP/2"),
        "stream"
      )
    }
  }
}
