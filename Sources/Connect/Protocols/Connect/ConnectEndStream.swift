internal import NIOCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The message that ends a stream, <https://connectrpc.com/docs/protocol#error-end-stream>: whether it
/// succeeded, and its trailers.
struct ConnectEndStream {
  /// The flag of the envelope that holds it.
  static let flag: UInt8 = 0b0000_0010

  /// Nil for a stream that succeeded.
  let error: ConnectError?
  let trailers: Headers

  /// Decodes the message. `"error": null` means success, as the conformance suite wants it; an error without a
  /// usable code is `unknown`.
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
    var trailers = Headers()
    // Names that differ only in case become one, in an order that does not change from run to run.
    for (name, values) in (json.metadata ?? [:]).sorted(by: { $0.key < $1.key }) {
      for value in values ?? [] { trailers.add(name: name, value: value) }
    }
    try HeaderListSize.check(metadata: trailers, limit: maximumMetadataSize)
    self.trailers = trailers
  }

  private struct JSON: Decodable {
    let error: ConnectErrorJSON?
    let metadata: [String: [String]?]?
  }
}
