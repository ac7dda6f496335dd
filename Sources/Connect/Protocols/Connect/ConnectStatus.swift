internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The message that ends a stream, <https://connectrpc.com/docs/protocol#error-end-stream>: whether it
/// succeeded, and its trailers.
struct ConnectEndStream {
  /// The flag of the envelope that holds the message.
  static let flag: UInt8 = 0b0000_0010

  /// Nil for a stream that succeeded.
  let error: ConnectError?
  let trailers: Headers
  /// What was changed in the message's texts.
  let text: ReceivedText

  /// Decodes the message. `"error": null` means success, as the conformance suite wants it; an error without a
  /// usable code is `unknown`. Metadata with impossible names are left out, and texts are made printable.
  ///
  /// - Parameter maximumMetadataSize: How large its metadata may be, counted like a header list.
  /// - Throws: ``ConnectError``: `internal` if it is not what the protocol says it should be,
  ///   `resource_exhausted` if the metadata is too large.
  init(_ message: ByteBuffer, maximumMetadataSize: Int) throws(ConnectError) {
    let json: JSON
    do {
      json = try JSONDecoder().decode(JSON.self, from: Data(message.readableBytesView))
    } catch {
      throw ConnectError(
        code: .internalError,
        message: "end-of-stream message does not parse",
        exception: error
      )
    }
    self.error = json.error?.error(fallback: .unknown)
    var text = json.error?.text ?? ReceivedText()
    var trailers = Headers()
    // Names that differ only in case become one, in an order that does not change from run to run.
    for (name, values) in (json.metadata ?? [:]).sorted(by: { $0.key < $1.key }) {
      for value in values ?? [] { text.add(name: name, value: value, to: &trailers) }
    }
    try HeaderListSize.check(metadata: trailers, limit: maximumMetadataSize)
    self.trailers = trailers
    self.text = text
  }

  private struct JSON: Decodable {
    let error: ConnectErrorJSON?
    let metadata: [String: [String]?]?
  }
}

/// An error as Connect writes it in JSON, <https://connectrpc.com/docs/protocol#error-end-stream>.
///
/// Each field that is unusable counts as absent: the rest may still help. `debug` and fields that we do not
/// know are skipped.
struct ConnectErrorJSON: Decodable {
  /// The limit for an error body and for an end-of-stream message, in bytes. Message limits do not apply to
  /// them: a client that takes small messages only still wants to know why a call failed.
  static let maximumSize = 1 << 20

  /// Nil if it is missing, null, or none of the codes.
  let code: Code?
  let message: String?
  /// Without details whose value is not base64.
  let details: [ConnectError.Detail]
  /// What was changed in ``message``.
  let text: ReceivedText

  /// The error in `body`; nil if `body` is not a JSON object.
  static func parse(_ body: ByteBuffer) -> ConnectErrorJSON? {
    guard body.readableBytes > 0 else { return nil }
    return try? JSONDecoder().decode(ConnectErrorJSON.self, from: Data(body.readableBytesView))
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    self.code = (try? fields.decode(String.self, forKey: .code)).flatMap(Code.init(name:))
    var text = ReceivedText()
    self.message = (try? fields.decode(String.self, forKey: .message)).map { text.message($0) }
    self.text = text
    let details = (try? fields.decode([Detail].self, forKey: .details)) ?? []
    self.details = details.compactMap(\.value)
  }

  /// The error, with `fallback` as its code if it has no usable one.
  func error(fallback: Code) -> ConnectError {
    var error = ConnectError(code: self.code ?? fallback, message: self.message, details: self.details)
    error.hasConnectCode = self.code != nil
    return error
  }

  private enum Key: CodingKey {
    case code, message, details
  }

  private struct Detail: Decodable {
    let value: ConnectError.Detail?

    private enum Key: CodingKey {
      case type, value
    }

    /// Never throws, so that one bad detail does not cost the others.
    init(from decoder: any Decoder) {
      guard let fields = try? decoder.container(keyedBy: Key.self),
        let type = try? fields.decode(String.self, forKey: .type),
        let value = try? fields.decode(String.self, forKey: .value),
        let bytes = Base64.decode(value)
      else {
        self.value = nil
        return
      }
      // Some servers send the type URL of an Any.
      let name = type.utf8.lastIndex(of: UInt8(ascii: "/")).map { type[type.utf8.index(after: $0)...] }
      self.value = ConnectError.Detail(type: PeerText.value(name.map(String.init) ?? type), value: bytes)
    }
  }
}

extension ConnectErrorJSON {
  /// The error of a complete response with another status than 200.
  ///
  /// An error in JSON counts. If it has no usable code, the status gives the code, and the message is kept.
  ///
  /// - Parameter received: Counts what is changed in the error's message.
  static func responseError(
    _ head: HTTPResponseHead,
    body: ByteBuffer,
    acceptedEncodings: AcceptedEncodings,
    _ received: inout ReceivedText
  ) -> ConnectError {
    guard let contentType = head.headers.first(lowercased: "content-type"),
      MediaType.matches(contentType, "application/json")
    else { return ResponseRules.statusError(head, body: body) }
    let encoding: ResponseEncoding
    do throws(ConnectError) {
      encoding = try acceptedEncodings.encoding(of: head.headers, header: "content-encoding")
    } catch {
      return error
    }
    // A body that does not decompress is treated like a body that does not parse: the status counts.
    guard let text = try? encoding.decompress(body, maximumSize: self.maximumSize),
      let json = self.parse(text)
    else { return ResponseRules.statusError(head, body: body) }
    received.add(json.text)
    guard json.code != nil || json.message != nil else {
      var error = ResponseRules.statusError(head, body: body)
      error.details = json.details
      return error
    }
    return json.error(fallback: Code(httpStatus: head.status))
  }
}
