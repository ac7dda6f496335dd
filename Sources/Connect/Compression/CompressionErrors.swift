internal import CZlib

/// The errors of compression and decompression.
enum CompressionErrors {
  /// The received bytes are not valid in their encoding.
  static func corrupt(_ name: String, _ problem: String) -> ConnectError {
    ConnectError(code: .internalError, message: "received message is no valid \(name): \(problem)")
  }

  /// - Parameters:
  ///   - size: What is known of the size, in bytes.
  ///   - limit: In bytes.
  static func tooLarge(_ size: String, limit: Int) -> ConnectError {
    MessageSizeErrors.received("\(size) bytes after decompression", limit: limit)
  }

  static func noMemory(_ purpose: String) -> ConnectError {
    ConnectError(code: .resourceExhausted, message: "no memory \(purpose)")
  }

  /// - Parameter status: What a function of zlib has returned.
  static func zlib(_ status: Int32) -> ConnectError {
    ConnectError(
      code: status == Z_MEM_ERROR ? .resourceExhausted : .internalError,
      message: "zlib failed with \(status)"
    )
  }
}
