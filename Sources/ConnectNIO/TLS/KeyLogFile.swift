package import Connect
package import NIOCore

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// A file that gets the secrets of TLS sessions, a line each, in the format of NSS (`SSLKEYLOGFILE`). Tools such as
/// Wireshark can then decrypt what they have recorded.
package final class KeyLogFile: Sendable {
  private let descriptor: CInt

  /// Opens the file to append to it. Creates it for the user alone if there is none. A pipe without a reader is an
  /// error.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition`.
  package init(path: String) throws(ConnectError) {
    self.descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard self.descriptor >= 0 else {
      let reason = strerror(errno).map { String(cString: $0) } ?? "error \(errno)"
      throw ConnectError(
        code: .failedPrecondition,
        message: "the key log file \(path) cannot be opened: \(reason)"
      )
    }
  }

  deinit {
    close(self.descriptor)
  }

  /// Appends a line, its end included, in one piece. What cannot be written is left out.
  package func append(_ line: ByteBuffer) {
    line.withUnsafeReadableBytes { bytes in
      _ = write(self.descriptor, bytes.baseAddress, bytes.count)
    }
  }
}
