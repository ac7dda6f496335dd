import Foundation
import NIOCore
import XCTest

@testable import Connect

/// Valid responses, cut and damaged at random. The seed is printed, so that a failure can be repeated.
final class DecoderFuzzTests: XCTestCase {
  /// How many damaged inputs to try; `make fuzz` sets many more than the default.
  private static let rounds =
    ProcessInfo.processInfo.environment["CONNECT_FUZZ_ROUNDS"].flatMap(Int.init) ?? 20_000

  private struct Case {
    var script: ResponseScript
    var decoder: any ResponseDecoder
  }

  private var cases: [Case] {
    let unary = ConnectUnaryDecoder(contentType: "application/proto", maximumMessageSize: 5000)
    let stream = ConnectStreamDecoder(contentType: "application/connect+proto", maximumMessageSize: 5000)
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

  private let accepted = AcceptedEncodings([GzipCompressionPool(), DeflateCompressionPool()])

  private func body(_ envelopes: (UInt8, ByteBuffer)...) -> [UInt8] {
    envelopes.flatMap { Array(Envelope.encode($1, flags: $0).readableBytesView) }
  }

  private func gzip(_ text: String) -> ByteBuffer {
    (try? GzipCompressionPool().compress(ByteBuffer(string: text))) ?? ByteBuffer()
  }

  private var compressedCases: [Case] {
    [
      Case(
        script: ResponseScript(
          headers: ["content-type": ["application/proto"], "content-encoding": ["gzip"]],
          body: self.gzip(String(repeating: "hello ", count: 100)).readableBytesView
        ),
        decoder: ConnectUnaryDecoder(
          contentType: "application/proto",
          maximumMessageSize: 5000,
          acceptedEncodings: self.accepted
        )
      ),
      Case(
        script: ResponseScript(
          headers: ["content-type": ["application/connect+proto"], "connect-content-encoding": ["gzip"]],
          body: self.body((1, self.gzip("a")), (0, ByteBuffer(string: "b")), (3, self.gzip("{}")))
        ),
        decoder: ConnectStreamDecoder(
          contentType: "application/connect+proto",
          maximumMessageSize: 5000,
          acceptedEncodings: self.accepted
        )
      ),
    ]
  }

  private var grpcCases: [Case] {
    let status: Headers = [
      "grpc-status": ["5"], "grpc-message": ["a%20b%"], "grpc-status-details-bin": ["CAkSBm5vIHdheQ"],
      "x": ["1"],
    ]
    let block = ByteBuffer(string: "grpc-status: 5\r\ngrpc-message:a%20b\r\nX: 1, 2:3\r\n")
    let messages = self.body((0, ByteBuffer(bytes: [1, 2, 3])), (1, self.gzip("hello")), (0, ByteBuffer()))
    let webBody = messages + self.body((0x80, block))
    func headers(_ type: String) -> Headers { ["content-type": [type], "grpc-encoding": ["gzip"]] }
    func web(_ isText: Bool) -> GRPCWebResponseDecoder {
      GRPCWebResponseDecoder(
        isText: isText,
        contentType: isText ? "application/grpc-web-text" : "application/grpc-web",
        maximumMessageSize: 5000,
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
          maximumMessageSize: 5000,
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
          body: messages + self.body((0x81, self.gzip("grpc-status:0")))
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

  func testDamagedResponsesEndOnce() {
    var random = SeededGenerator()
    let cases = self.cases
    for round in 0..<Self.rounds {
      let item = cases[round % cases.count]
      var script = item.script
      var body = Array(script.body.readableBytesView)
      for _ in 0..<Int.random(in: 0...4, using: &random) { self.damage(&body, &random) }
      script.body = ByteBuffer(bytes: body)
      if Int.random(in: 0..<4, using: &random) == 0 {
        script.ending = .failure(ConnectError(code: .unavailable, message: "reset"))
      }
      if Int.random(in: 0..<8, using: &random) == 0 {
        script.head?.status = [200, 304, 404, 500, 999].randomElement(using: &random) ?? 200
      }
      if Int.random(in: 0..<20, using: &random) == 0 { script.head = nil }
      let chunks = self.randomChunks(body.count, &random)
      let results = script.run(item.decoder, chunks: chunks, asksEachTime: Bool.random(using: &random))
      guard results.completionCount == 1, results.isInOrder, results.bufferedByteCount == 0 else {
        XCTFail("round \(round): \(results)")
        return
      }
    }
  }

  func testDamagedTexts() {
    var random = SeededGenerator()
    let texts = [
      "a%20b%C3%A4%", "AAECAwQFBgc=", "CAkSBm5vIHdheQ",
      "grpc-status: 5\r\ngrpc-message:a%20b\r\nX: 1, 2:3\r\n",
    ]
    for round in 0..<Self.rounds {
      var bytes = Array(texts[round % texts.count].utf8)
      for _ in 0..<Int.random(in: 1...6, using: &random) { self.damage(&bytes, &random) }
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
      if bytes.isEmpty { continue }
      for pool in [GzipCompressionPool(), DeflateCompressionPool()] as [any CompressionPool] {
        let inflated = try? pool.decompress(ByteBuffer(bytes: bytes), maximumSize: 100)
        XCTAssertLessThanOrEqual(inflated?.readableBytes ?? 0, 100)
      }
    }
  }

  private func damage(_ body: inout [UInt8], _ random: inout SeededGenerator) {
    guard !body.isEmpty else { return }
    let index = Int.random(in: 0..<body.count, using: &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: body[index] = UInt8.random(in: 0...255, using: &random)
    case 1: body[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 2: body.removeSubrange(index...)
    case 3: body.remove(at: index)
    case 4: body.insert(Array(#"{}[]",:0"\"#.utf8).randomElement(using: &random) ?? 0, at: index)
    default: body.insert(contentsOf: body[index...].prefix(50), at: index)
    }
  }
}
