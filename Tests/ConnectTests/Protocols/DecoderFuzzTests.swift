import Foundation
import NIOCore
import TestSupport
import XCTest

@testable import Connect

/// Valid responses, cut and damaged at random, and random ones. The seed is printed, so that a failure can be
/// repeated.
final class DecoderFuzzTests: XCTestCase {
  /// How many inputs each test tries; `make fuzz` sets many more than the default.
  static let rounds = ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap(Int.init) ?? 20_000
  /// The limit for a message, in bytes.
  private static let limit = 5000

  private struct Case {
    var script: ResponseScript
    var decoder: any ResponseDecoder

    /// Whether its messages may be larger than what arrives.
    var isCompressed: Bool {
      self.script.head?.headers.contains { $0.name.hasSuffix("encoding") } == true
    }
  }

  private var cases: [Case] {
    let unary = ConnectUnaryDecoder(contentType: "application/proto", maximumMessageSize: Self.limit)
    let stream = ConnectStreamDecoder(
      contentType: "application/connect+proto",
      maximumMessageSize: Self.limit
    )
    let streamHeaders: Headers = ["content-type": ["application/connect+proto"], "x-a": ["1"]]
    let errorJSON =
      #"{"code":"aborted","message":"ü\u00e4","details":[{"type":"a.B","value":"AAEC"}],"x":[1.5e3]}"#
    let endJSON = #"{"error":\#(errorJSON),"metadata":{"a":["1","2"],"B":["3"]}}"#
    func body(_ envelopes: (UInt8, [UInt8])...) -> [UInt8] {
      envelopes.flatMap { Array(Envelope.encode(ByteBuffer(bytes: $1), flags: $0).readableBytesView) }
    }
    return [
      Case(
        script: ResponseScript(
          headers: ["content-type": ["application/proto"], "content-length": ["300"], "trailer-a": ["b"]],
          body: Array(repeating: 7, count: 300)
        ),
        decoder: unary
      ),
      Case(
        script: ResponseScript(
          status: 503,
          headers: ["content-type": ["application/json"], "trailer-a": ["b"]],
          body: errorJSON.utf8
        ),
        decoder: unary
      ),
      Case(
        script: ResponseScript(
          headers: streamHeaders,
          body: body((0, [1, 2, 3]), (0, []), (0, Array(repeating: 9, count: 500)), (2, Array("{}".utf8)))
        ),
        decoder: stream
      ),
      Case(
        script: ResponseScript(headers: streamHeaders, body: body((0, [1]), (2, Array(endJSON.utf8)))),
        decoder: stream
      ),
      Case(
        script: ResponseScript(
          status: 500,
          headers: ["content-type": ["application/json"]],
          body: errorJSON.utf8
        ),
        decoder: stream
      ),
    ] + self.compressedCases + self.grpcCases
  }

  private let accepted = AcceptedEncodings(CompressionPoolTests.pools)

  private func body(_ envelopes: (UInt8, ByteBuffer)...) -> [UInt8] {
    envelopes.flatMap { Array(Envelope.encode($1, flags: $0).readableBytesView) }
  }

  private func compressed(_ text: String, _ pool: any CompressionPool = GzipCompressionPool()) -> ByteBuffer {
    (try? pool.compress(ByteBuffer(string: text))) ?? ByteBuffer()
  }

  private var compressedCases: [Case] {
    CompressionPoolTests.pools.flatMap { pool in
      [
        Case(
          script: ResponseScript(
            headers: ["content-type": ["application/proto"], "content-encoding": [pool.name]],
            body: self.compressed(String(repeating: "hello ", count: 100), pool).readableBytesView
          ),
          decoder: ConnectUnaryDecoder(
            contentType: "application/proto",
            maximumMessageSize: Self.limit,
            acceptedEncodings: self.accepted
          )
        ),
        Case(
          script: ResponseScript(
            headers: [
              "content-type": ["application/connect+proto"], "connect-content-encoding": [pool.name],
            ],
            body: self.body(
              (1, self.compressed("a", pool)),
              (0, ByteBuffer(string: "b")),
              (3, self.compressed("{}", pool))
            )
          ),
          decoder: ConnectStreamDecoder(
            contentType: "application/connect+proto",
            maximumMessageSize: Self.limit,
            acceptedEncodings: self.accepted
          )
        ),
      ]
    }
  }

  private var grpcCases: [Case] {
    let status: Headers = [
      "grpc-status": ["5"], "grpc-message": ["a%20b%"], "grpc-status-details-bin": ["CAkSBm5vIHdheQ"],
      "x": ["1"],
    ]
    let block = ByteBuffer(string: "grpc-status: 5\r\ngrpc-message:a%20b\r\nX: 1, 2:3\r\n")
    let messages = self.body(
      (0, ByteBuffer(bytes: [1, 2, 3])),
      (1, self.compressed("hello")),
      (0, ByteBuffer())
    )
    let webBody = messages + self.body((0x80, block))
    func headers(_ type: String) -> Headers { ["content-type": [type], "grpc-encoding": ["gzip"]] }
    func web(_ isText: Bool) -> GRPCWebResponseDecoder {
      GRPCWebResponseDecoder(
        isText: isText,
        contentType: isText ? "application/grpc-web-text" : "application/grpc-web",
        maximumMessageSize: Self.limit,
        acceptedEncodings: self.accepted
      )
    }
    let text = Base64.encode(ByteBuffer(bytes: webBody), alphabet: .standard, isPadded: true)
    return [
      Case(
        script: ResponseScript(headers: headers("application/grpc"), body: messages, trailers: status),
        decoder: GRPCResponseDecoder(
          baseContentType: "application/grpc",
          contentType: "application/grpc",
          maximumMessageSize: Self.limit,
          acceptedEncodings: self.accepted
        )
      ),
      Case(
        script: ResponseScript(headers: headers("application/grpc-web"), body: webBody),
        decoder: web(false)
      ),
      Case(
        script: ResponseScript(
          headers: headers("application/grpc-web"),
          body: messages + self.body((0x81, self.compressed("grpc-status:0")))
        ),
        decoder: web(false)
      ),
      Case(
        script: ResponseScript(headers: headers("application/grpc-web-text"), body: text.readableBytesView),
        decoder: web(true)
      ),
    ]
  }

  private func randomChunks(_ count: Int, _ random: inout SeededGenerator) -> [Int] {
    let largest = [1, 8, 200, 2000].randomElement(using: &random) ?? 1
    var chunks: [Int] = []
    var rest = count
    while rest > 0 {
      chunks.append(min(rest, Int.random(in: 1...largest, using: &random)))
      rest -= chunks.last ?? rest
    }
    return chunks
  }

  func testChunkingMakesNoDifference() {
    var random = SeededGenerator()
    for (index, item) in self.cases.enumerated() {
      let expected = item.script.run(item.decoder)
      XCTAssertEqual(expected.completionCount, 1)
      for _ in 0..<400 {
        let chunks = self.randomChunks(item.script.body.readableBytes, &random)
        let asksEachTime = Bool.random(using: &random)
        let results = item.script.run(item.decoder, chunks: chunks, asksEachTime: asksEachTime)
        XCTAssertEqual(results, expected, "case \(index), chunks \(chunks)")
      }
    }
  }

  /// What holds for each response, however wrong it is.
  private func isHandledWell(_ results: ResponseResults, of item: Case, _ round: Int) -> Bool {
    let isGood =
      results.completionCount == 1 && results.isInOrder && !results.isEndless
      && results.bufferedByteCount == 0 && results.largestMessage <= Self.limit
      && results.largestExcess <= Self.limit && (item.isCompressed || results.largestGrowth == 0)
    if !isGood { XCTFail("round \(round): \(results)") }
    return isGood
  }

  func testDamagedResponsesEndOnce() {
    var random = SeededGenerator()
    let watchdog = Watchdog()
    let cases = self.cases
    for round in 0..<Self.rounds {
      watchdog.begin(round: round)
      var item = cases[round % cases.count]
      var body = Array(item.script.body.readableBytesView)
      for _ in 0..<Int.random(in: 0...4, using: &random) { random.damage(&body) }
      item.script.body = ByteBuffer(bytes: body)
      self.vary(&item.script, &random)
      let chunks = self.randomChunks(body.count, &random)
      let results = item.script.run(item.decoder, chunks: chunks, asksEachTime: .random(using: &random))
      guard self.isHandledWell(results, of: item, round) else { return }
    }
  }

  func testRandomResponsesEndOnce() {
    var random = SeededGenerator()
    let watchdog = Watchdog()
    let cases = self.cases
    for round in 0..<Self.rounds {
      watchdog.begin(round: round)
      var item = cases[round % cases.count]
      let body = random.body()
      item.script.body = ByteBuffer(bytes: body)
      if Bool.random(using: &random) {
        item.script.trailers = [
          "grpc-status": [random.text()], "grpc-message": [random.text()],
          "grpc-status-details-bin": [random.text()],
        ]
      }
      self.vary(&item.script, &random)
      let chunks = self.randomChunks(body.count, &random)
      let results = item.script.run(item.decoder, chunks: chunks, asksEachTime: .random(using: &random))
      guard self.isHandledWell(results, of: item, round) else { return }
    }
  }

  /// Sometimes gives the response another status or another end.
  private func vary(_ script: inout ResponseScript, _ random: inout SeededGenerator) {
    if Int.random(in: 0..<4, using: &random) == 0 {
      script.ending = .failure(ConnectError(code: .unavailable, message: "reset"))
    }
    if Int.random(in: 0..<8, using: &random) == 0 {
      script.head?.status = [200, 304, 404, 500, 999].randomElement(using: &random) ?? 200
    }
    if Int.random(in: 0..<20, using: &random) == 0 { script.head = nil }
  }

  func testDamagedAndRandomTexts() {
    var random = SeededGenerator()
    let watchdog = Watchdog()
    let texts = [
      "a%20b%C3%A4%", "AAECAwQFBgc=", "CAkSBm5vIHdheQ",
      "grpc-status: 5\r\ngrpc-message:a%20b\r\nX: 1, 2:3\r\n",
    ]
    for round in 0..<Self.rounds {
      watchdog.begin(round: round)
      var bytes = Array(texts[round % texts.count].utf8)
      for _ in 0..<Int.random(in: 1...6, using: &random) { random.damage(&bytes) }
      if Int.random(in: 0..<3, using: &random) == 0 { bytes = random.body() }
      let text = String(decoding: bytes, as: UTF8.self)

      let decoded = PercentEncoding.decode(text)
      XCTAssertLessThanOrEqual(decoded.utf8.count, 3 * text.utf8.count)
      XCTAssertEqual(PercentEncoding.decode(PercentEncoding.encode(text.utf8)), text)
      if let plain = Base64.decode(text) {
        XCTAssertLessThan(plain.readableBytes, bytes.count + 1)
      }
      if let trailers = try? GRPCWebTrailers.parse(ByteBuffer(bytes: bytes)) {
        XCTAssertLessThanOrEqual(trailers.count, bytes.count)
      }
    }
  }
}
