internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
  /// Without those whose value is not base64.
  let details: [ConnectError.Detail]

  /// The error in `body`; nil if that is not a JSON object.
  static func parse(_ body: ByteBuffer) -> ConnectErrorJSON? {
    guard body.readableBytes > 0 else { return nil }
    return try? JSONDecoder().decode(ConnectErrorJSON.self, from: Data(body.readableBytesView))
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    self.code = (try? fields.decode(String.self, forKey: .code)).flatMap(Code.init(name:))
    self.message = try? fields.decode(String.self, forKey: .message)
    let details = (try? fields.decode([Detail].self, forKey: .details)) ?? []
    self.details = details.compactMap(\.value)
  }

  /// The error, with `fallback` as its code if it has no usable one.
  func error(fallback: Code) -> ConnectError {
    ConnectError(code: self.code ?? fallback, message: self.message, details: self.details)
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
      self.value = ConnectError.Detail(type: name.map(String.init) ?? type, value: bytes)
    }
  }
}
