import Connect
import ConnectNIO
import NIOCore
import XCTest

/// Heads and bodies whose end is not clear, or never comes. Each ends its call at once, without a deadline.
final class HTTP1FramingTests: XCTestCase {
  /// What comes of a call that a server answers.
  private func outcome(
    _ text: String,
    endlessly piece: String? = nil,
    closes: Bool = false
  ) async throws -> TestCall.Outcome {
    let server = try await RawServer { connection in
      guard connection.takeRequest() != nil else { return }
      connection.send(text)
      if closes {
        connection.close()
        return
      }
      // For a client that would wait for ever: its call then fails with another error.
      let channel = connection.channel
      channel.eventLoop.scheduleTask(in: .seconds(10)) { channel.close(promise: nil) }
      guard let piece else { return }
      // Much more than the client has to take.
      let pieces = String(repeating: piece, count: (64 << 10) / piece.utf8.count)
      for _ in 0..<64 where channel.isActive { connection.send(pieces) }
    }
    let client = try TestClient(server)
    let outcome = try await client.call().start().outcome()
    await client.shutdown()
    await server.close()
    return outcome
  }

  private func response(_ text: String, closes: Bool = false) async throws -> TestCall.Response {
    switch try await self.outcome(text, closes: closes) {
    case .response(let response): return response
    case .failure(let failure): throw failure.error
    }
  }

  private func failure(_ text: String, endlessly piece: String? = nil) async throws -> ConnectError? {
    switch try await self.outcome(text, endlessly: piece) {
    case .response: nil
    case .failure(let failure): failure.error
    }
  }

  func testTransferCodingsThatAreNotFramed() async throws {
    for (value, shown) in [
      ("chunked\t", "chunked\t"), ("chunked, identity", nil), ("gzip, chunked", nil), ("identity", nil),
      ("gzip", nil),
      ("chunked, chunked", nil), ("xchunked", nil), ("chunked;a=b", nil), ("", nil), ("chunked,", nil),
    ] as [(String, String?)] {
      let error = try await self.failure(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: \(value)\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      )
      XCTAssertEqual(error?.code, .internalError, value)
      XCTAssertTrue(
        error?.message?.contains("transfer-encoding '\(shown ?? value)' is not supported") == true,
        "\(value): \(error?.message ?? "none")"
      )
    }
  }

  func testContradictoryFraming() async throws {
    for fields in [
      "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
      "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n",
      "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
      "content-length: 3\r\ntransfer-encoding: chunked\r\n",
      "content-length: 3\r\ncontent-length: 4\r\n", "content-length: 3\r\ncontent-length: 3\r\n",
      "content-length: 3, 3\r\n", "content-length: +3\r\n", "content-length: 3x\r\n",
      "content-length: -3\r\n",
      "content-length:\r\n", "content-length: 18446744073709551615\r\n",
      "content-length: 99999999999999999999\r\n",
    ] {
      let error = try await self.failure("HTTP/1.1 200 OK\r\n\(fields)\r\n3\r\nabc\r\n0\r\n\r\n")
      XCTAssertEqual(error?.code, .internalError, fields)
      XCTAssertTrue(
        error?.message?.contains("not valid HTTP/1.1") == true,
        "\(fields): \(error?.message ?? "none")"
      )
    }
  }

  func testWhiteSpaceAroundValues() async throws {
    for (fields, body) in [
      ("content-length: 3\r\n", "abc"), ("content-length: 3 \r\n", "abc"), ("content-length: \t3\r\n", "abc"),
      ("transfer-encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
      ("transfer-encoding:chunked  \r\n", "3\r\nabc\r\n0\r\n\r\n"),
      ("transfer-encoding:\tChunked\r\n", "1;x\r\na\r\n2\r\nbc\r\n0\r\n\r\n"),
    ] {
      let response = try await self.response("HTTP/1.1 200 OK\r\nx-a: \t b c \t\r\n\(fields)\r\n\(body)")
      XCTAssertEqual(response.text, "abc", fields)
      XCTAssertEqual(response.head.headers["x-a"], ["b c"], fields)
    }
    let response = try await self.response("HTTP/1.1 200 OK\r\nx-a:b\t\r\n\r\nabc", closes: true)
    XCTAssertEqual(response.text, "abc")
    XCTAssertEqual(response.head.headers["x-a"], ["b"])
  }

  func testChunksThatAreNone() async throws {
    for body in [
      "ffffffffffffffff\r\n", "fffffffffffffff\r\nabc", "7fffffffffffffff\r\nabc", "0x3\r\nabc", "3\nabc",
    ] {
      let error = try await self.failure("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\(body)")
      XCTAssertEqual(error?.code, .internalError, body)
      XCTAssertTrue(
        error?.message?.contains("not valid HTTP/1.1") == true,
        "\(body): \(error?.message ?? "none")"
      )
    }
  }

  func testWhatNeverEnds() async throws {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    let cases: [(what: String, start: String, piece: String, code: Code, message: String)] = [
      (
        "informational responses", "", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", .internalError,
        "more than 100"
      ),
      ("100 Continue", "", "HTTP/1.1 100 \r\n\r\n", .internalError, "more than 100"),
      ("empty lines", "", "\r\n", .internalError, ""),
      ("reason phrase", "HTTP/1.1 200 ", "o", .resourceExhausted, "head has more than"),
      ("space before a value", "HTTP/1.1 200 OK\r\na:", " ", .resourceExhausted, "head has more than"),
      ("fields", "HTTP/1.1 200 OK\r\n", "a: b\r\n", .resourceExhausted, ""),
      ("a name", "HTTP/1.1 200 OK\r\n", "a", .resourceExhausted, ""),
      ("a value", "HTTP/1.1 200 OK\r\na: ", "a", .resourceExhausted, ""),
      ("chunk extension", chunked + "3;", "x", .internalError, "more than 4096 bytes"),
      ("zeros of a chunk's size", chunked, "0", .internalError, "more than 4096 bytes"),
      ("trailers", chunked + "0\r\n", "a: b\r\n", .internalError, ""),
      ("space in a trailer", chunked + "0\r\na:", " ", .internalError, "trailers of a chunked body"),
    ]
    for (what, start, piece, code, message) in cases {
      let error = try await self.failure(start, endlessly: piece)
      // NIO's decoder has a limit for fields, which counts trailers, too.
      let codes = what == "trailers" ? [code, .resourceExhausted] : [code]
      XCTAssertTrue(
        error.map { codes.contains($0.code) } ?? false,
        "\(what): \(error.map { "\($0)" } ?? "none")"
      )
      if message.isEmpty { continue }
      XCTAssertTrue(error?.message?.contains(message) == true, "\(what): \(error?.message ?? "none")")
    }
  }

  func testSomeInformationalResponses() async throws {
    let hints = String(repeating: "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", count: 100)
    let response = try await self.response(hints + "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc")
    XCTAssertEqual(response.text, "abc")
  }
}
