// Extracted from Sources/Connect/Connect.docc/WritingACodec.md by `make generate`.

import Connect
import ConnectTesting
import NIOCore
import XCTest

struct Celsius: Sendable, Equatable {
  var hundredths: Int32
}

extension MessageCoding where Message == Celsius {
  /// Four bytes, big endian.
  static var fourBytes: MessageCoding {
    MessageCoding(
      binary: Functions(
        encode: { message, _ in ByteBuffer(integer: message.hundredths) },
        decode: { bytes, _ in
          var bytes = bytes
          guard bytes.readableBytes == 4, let hundredths = bytes.readInteger(as: Int32.self) else {
            throw ConnectError(code: .internalError, message: "a temperature has four bytes")
          }
          return Celsius(hundredths: hundredths)
        }
      ),
      json: nil
    )
  }
}

/// Seals what another codec makes.
struct SealedCodec: Codec {
  let base: any Codec
  let seal: @Sendable (ByteBuffer) throws -> ByteBuffer
  let open: @Sendable (ByteBuffer) throws -> ByteBuffer

  /// The subtype of the content type, such as `application/proto-sealed`. The server has to know it.
  var name: String { "\(self.base.name)-sealed" }

  func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer {
    try self.seal(try self.base.encode(message, as: coding, deterministic: deterministic))
  }

  func decode<Message: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<Message>) throws -> Message {
    try self.base.decode(try self.open(bytes), as: coding)
  }
}

final class SealedCodecTests: XCTestCase {
  func testSealsBothDirections() async throws {
    let mask: @Sendable (ByteBuffer) -> ByteBuffer = { ByteBuffer(bytes: $0.readableBytesView.map { $0 ^ 0x55 }) }
    let config = ProtocolClientConfig(
      host: "http://memory",
      codec: SealedCodec(base: ProtoCodec(), seal: mask, open: mask)
    )
    let mock = Connectrpc_Eliza_V1_ElizaServiceClientMock(MockService(config: config))
    mock.mockSay.answer { request, context in .with { $0.sentence = "\(request.sentence), \(context.codecName)" } }

    let answer = try await mock.say(.with { $0.sentence = "Hello" })

    XCTAssertEqual(answer.sentence, "Hello, proto-sealed")
  }
}

private func Connect_WritingACodec_1() async throws {
  let setPoint = MethodSpec<Celsius, Celsius>(
    info: MethodInfo(path: "/acme.v1.Thermostat/SetPoint", streamType: .unary),
    input: .fourBytes,
    output: .fourBytes
  )
  _ = setPoint
}

private func Connect_WritingACodec_4() async throws {
  var config: ProtocolClientConfig = given()
  config.methodFormats = { method in
    method.name == "Export" ? MethodFormat(codec: JSONCodec()) : nil
  }

  var options = CallOptions()
  options.codec = JSONCodec()
  _ = config
  _ = options
}

private func Connect_WritingACodec_5() async throws {
  var config: ProtocolClientConfig = given()
  let parser = ResponseParser(for: Celsius.self) { response in
    let body = String(buffer: response.message)
    switch response.httpHeaders.first("content-type") {
    case "text/csv":
      // The protocol has found an error, a foreign content type. The parser's message replaces it.
      guard let hundredths = Int32(body) else { throw ConnectError(code: .dataLoss, message: "not a number") }
      return Celsius(hundredths: hundredths)
    case "text/html":
      throw ConnectError(code: response.code, message: "a proxy answered: \(body.prefix(200))")
    default:
      return nil  // As without a parser.
    }
  }
  config.methodFormats = { method in
    method.path == "/acme.v1.Thermostat/SetPoint" ? MethodFormat(responseParser: parser) : nil
  }
  _ = config
  _ = parser
}
