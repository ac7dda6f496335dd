internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The JSON of ``MessageCoding/codable``.
enum CodableJSON {
  // Both classes are safe to share once they are set up: encoding and decoding only read their options.
  private static let encoder = makeEncoder(formatting: [.withoutEscapingSlashes])
  private static let deterministicEncoder = makeEncoder(formatting: [.withoutEscapingSlashes, .sortedKeys])
  private static let decoder = makeDecoder()

  /// 0001-01-01 to 9999-12-31, in seconds since 2001.
  private static let years1To9999 = -63_114_076_800.0...252_423_993_599.0
  private static let wholeSeconds = Date.ISO8601FormatStyle()
  private static let milliseconds = Date.ISO8601FormatStyle(includingFractionalSeconds: true)

  static func encode(_ message: some Encodable, options: JSONCodingOptions) throws -> ByteBuffer {
    let encoder = options.deterministic ? self.deterministicEncoder : self.encoder
    return ContiguousByteBuffer(try encoder.encode(message)).buffer
  }

  static func decode<M: Decodable>(_ type: M.Type, from bytes: ByteBuffer) throws -> M {
    try self.decoder.decode(M.self, from: Data(bytes.readableBytesView))
  }

  private static func makeEncoder(formatting: JSONEncoder.OutputFormatting) -> JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "Infinity",
      negativeInfinity: "-Infinity",
      nan: "NaN"
    )
    encoder.dateEncodingStrategy = .custom { date, encoder in
      guard Self.years1To9999.contains(date.timeIntervalSinceReferenceDate) else {
        throw EncodingError.invalidValue(
          date,
          .init(codingPath: encoder.codingPath, debugDescription: "a date that RFC 3339 cannot say")
        )
      }
      let milliseconds = (date.timeIntervalSinceReferenceDate * 1000).rounded()
      let style = milliseconds.remainder(dividingBy: 1000) == 0 ? Self.wholeSeconds : Self.milliseconds
      let rounded = Date(timeIntervalSinceReferenceDate: milliseconds / 1000)
      var container = encoder.singleValueContainer()
      try container.encode(rounded.formatted(style))
    }
    return encoder
  }

  private static func makeDecoder() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity",
      negativeInfinity: "-Infinity",
      nan: "NaN"
    )
    decoder.dateDecodingStrategy = .custom { decoder in
      let container = try decoder.singleValueContainer()
      let text = try container.decode(String.self)
      if let date = try? Self.wholeSeconds.parse(text) { return date }
      if let date = try? Self.milliseconds.parse(text) { return date }
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an RFC 3339 time: \(text)")
    }
    return decoder
  }
}
