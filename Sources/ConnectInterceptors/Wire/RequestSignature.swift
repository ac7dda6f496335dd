internal import NIOCore

/// What a ``RequestSigner`` signs, and how a server checks it.
///
/// The signature is HMAC-SHA256 (RFC 2104), as 64 hexadecimal digits in lower case, of ``signedText`` in UTF-8: four lines
/// without a line end behind the last.
///
/// ```text
/// POST
/// /connectrpc.eliza.v1.ElizaService/Say
/// Sun, 06 Nov 1994 08:49:37 GMT
/// e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
/// ```
///
/// The last line is the SHA-256 of the body as it is on the wire. A server computes the same, compares the signatures in constant
/// time, and refuses dates that are minutes away from its own.
public struct RequestSignature: Sendable, Hashable {
  /// The names of the fields that a signed request has.
  public struct Fields: Sendable, Hashable {
    /// The header with the date. The default is `date`.
    public var date: String
    /// The header with the id of the key, if it has one. The default is `x-signature-key`.
    public var key: String
    /// The header or trailer with the signature. The default is `x-signature`.
    public var signature: String

    /// Names as given; what is left out is as in ``defaults``.
    public init(date: String = "date", key: String = "x-signature-key", signature: String = "x-signature") {
      self.date = date
      self.key = key
      self.signature = signature
    }

    /// `date`, `x-signature-key` and `x-signature`.
    public static var defaults: Fields { Fields() }
  }

  /// The HTTP method.
  public var method: String
  /// Path and query, exactly as they go on the wire.
  public var target: String
  /// The value of the header with the date, in the form of RFC 9110, section 5.6.7.
  public var date: String
  /// The SHA-256 of the body as 64 hexadecimal digits in lower case.
  public var bodyDigest: String

  /// What is signed.
  public init(method: String, target: String, date: String, bodyDigest: String) {
    self.method = method
    self.target = target
    self.date = date
    self.bodyDigest = bodyDigest
  }

  /// The text that is signed.
  public var signedText: String { "\(self.method)\n\(self.target)\n\(self.date)\n\(self.bodyDigest)" }

  /// The signature.
  public func value(secret: [UInt8]) -> String {
    Hexadecimal.text(HMAC.code(of: Array(self.signedText.utf8), key: secret))
  }
}
