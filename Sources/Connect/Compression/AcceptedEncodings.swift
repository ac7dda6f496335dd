internal import NIOCore

/// The encodings that a client accepts in responses. Made once per client and shared by its calls.
final class AcceptedEncodings: Sendable {
  static let none = AcceptedEncodings([])

  private let pools: [any CompressionPool]
  /// The header value that announces the encodings in a request; nil if there are none.
  let headerValue: String?

  init(_ pools: [any CompressionPool]) {
    self.pools = pools
    self.headerValue = pools.isEmpty ? nil : pools.map(\.name).joined(separator: ",")
  }

  /// The encoding of a response's messages, as the header `name` says.
  ///
  /// - Throws: ``ConnectError`` with `internal` if the encoding was not announced.
  func encoding(of headers: Headers, header name: String) throws(ConnectError) -> ResponseEncoding {
    guard let encoding = headers.first(lowercased: name) else {
      return ResponseEncoding(pool: nil, header: name)
    }
    let lowercased = encoding.asciiLowercased
    for pool in self.pools where pool.hasName(lowercased) {
      return ResponseEncoding(pool: pool, header: name)
    }
    guard lowercased.isEmpty || lowercased == "identity" else {
      throw ConnectError(
        code: .internalError,
        message:
          "response has unknown \(name) '\(PeerText.value(encoding))', which the request did not offer (see ProtocolClientConfig.compression)"
      )
    }
    return ResponseEncoding(pool: nil, header: name)
  }
}

/// How the messages of one response are encoded.
struct ResponseEncoding {
  /// Nil for a response that is not compressed.
  let pool: (any CompressionPool)?
  /// The header that names the encoding.
  let header: String

  /// The largest compressed form of a message of `size` bytes, in bytes: no encoding adds more to data that does not
  /// compress.
  static func maximumCompressedSize(of size: Int) -> Int {
    size.addingReportingOverflow(size / 128 + 1024).overflow ? size : size + size / 128 + 1024
  }

  /// The decompressed form of `message`; an empty one is empty in every encoding.
  func decompress(_ message: ByteBuffer, maximumSize: Int) throws(ConnectError) -> ByteBuffer {
    guard let pool = self.pool, message.readableBytes > 0 else { return message }
    let result: ByteBuffer
    do {
      result = try pool.decompress(message, maximumSize: maximumSize)
    } catch let error as ConnectError {
      throw error
    } catch {
      throw ConnectError(
        code: .internalError,
        message: "received message does not decompress as \(pool.name): \(error)",
        exception: error
      )
    }
    guard result.readableBytes <= maximumSize else {
      throw CompressionErrors.tooLarge("\(result.readableBytes)", limit: maximumSize)
    }
    return result
  }
}
