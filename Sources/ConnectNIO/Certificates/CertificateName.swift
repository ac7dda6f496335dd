/// The name of a certificate's subject or issuer (RFC 5280, section 4.1.2.4).
///
/// Two names are equal if they differ at most in case, in white space and in the types of their strings (RFC 5280,
/// section 7.1).
package struct CertificateName: Sendable, Equatable {
  private struct Attribute: Sendable, Equatable {
    var type: [UInt8]
    var value: String

    static func == (a: Attribute, b: Attribute) -> Bool {
      a.type == b.type && a.normalized == b.normalized
    }

    private var normalized: [Substring] { self.value.lowercased().split(whereSeparator: \.isWhitespace) }
  }

  private var attributes: [Attribute] = []

  /// - Parameter der: The content of the `Name`.
  init?(_ der: DERReader) {
    var names = der
    while names.nextTag != nil {
      guard var set = names.enter(DERReader.set) else { return nil }
      while set.nextTag != nil {
        guard var attribute = set.enter(DERReader.sequence),
          let type = attribute.next(DERReader.objectIdentifier), let value = attribute.next()
        else { return nil }
        self.attributes.append(Attribute(type: Array(type), value: Self.text(value)))
      }
    }
  }

  private static func text(_ value: DERReader.Element) -> String {
    // UTF8String, BMPString, UniversalString; the others have one byte for each character.
    switch value.tag {
    case 0x0c: String(decoding: value.content, as: UTF8.self)
    case 0x1e: String(decoding: self.units(value.content, as: UInt16.self), as: UTF16.self)
    case 0x1c: String(decoding: self.units(value.content, as: UInt32.self), as: UTF32.self)
    default: String(String.UnicodeScalarView(value.content.map { Unicode.Scalar($0) }))
    }
  }

  private static func units<Unit: FixedWidthInteger>(
    _ bytes: ArraySlice<UInt8>,
    as type: Unit.Type
  ) -> [Unit] {
    let size = MemoryLayout<Unit>.size
    return stride(from: bytes.startIndex, through: bytes.endIndex - size, by: size).map { start in
      bytes[start..<start + size].reduce(0) { $0 << 8 | Unit($1) }
    }
  }
}

extension CertificateName: CustomStringConvertible {
  /// For example `CN=localhost, O=Example`. Whoever made the certificate chose what is in it.
  package var description: String {
    let labels: [(UInt8, String)] = [(0x03, "CN"), (0x0a, "O"), (0x0b, "OU")]
    let parts = labels.compactMap { number, label -> String? in
      let value = self.attributes.last { $0.type == [0x55, 0x04, number] }?.value
      return value.map { "\(label)=\(Self.readable($0))" }
    }
    return parts.isEmpty ? "no name" : parts.joined(separator: ", ")
  }

  /// What a peer has chosen, fit for a message: short, and without control characters.
  package static func readable(_ text: String) -> String {
    let scalars = text.unicodeScalars.prefix(100).map { scalar -> Character in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: "?"
      default: Character(scalar)
      }
    }
    return String(scalars)
  }
}
