internal import Connect
internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An error as the Connect protocol writes it. <https://connectrpc.com/docs/protocol#error-end-stream>
struct ConnectErrorBody: Encodable {
  struct Detail: Encodable {
    var type: String
    var value: String
  }

  var code: String
  var message: String?
  var details: [Detail]?

  init(_ error: ConnectError) {
    self.code = error.code.name
    self.message = error.message.flatMap { $0.isEmpty ? nil : $0 }
    guard !error.details.isEmpty else { return }
    self.details = error.details.map { detail in
      let value = Base64.encode(detail.value, alphabet: .standard, isPadded: false)
      return Detail(type: detail.type, value: String(buffer: value))
    }
  }
}

extension ByteBuffer {
  /// A value as JSON, its keys in alphabetical order so that the bytes are the same each time.
  init(json value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    self.init(bytes: try encoder.encode(value))
  }
}
