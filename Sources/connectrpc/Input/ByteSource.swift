import Foundation
import NIOCore

/// Bytes of a file or of standard input, as they come.
final class ByteSource: Sendable {
  private static let pieceSize = 64 << 10

  private let descriptor: Int32

  static let standardInput = ByteSource(0)

  private init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// - Throws: ``Failure`` if the file cannot be read.
  init(file path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw Failure.usage("cannot read \(path): \(String(cString: strerror(errno)))")
    }
    self.descriptor = descriptor
  }

  deinit {
    if self.descriptor != 0 { close(self.descriptor) }
  }

  /// The next bytes, as soon as there are any; nil at the end.
  ///
  /// Waits on a separate thread, since a terminal or a pipe may be silent for long.
  func next() async throws -> ByteBuffer? {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async {
        continuation.resume(with: Result { try self.read() })
      }
    }
  }

  private func read() throws -> ByteBuffer? {
    var piece = ByteBuffer()
    var problem: Int32 = 0
    let count = piece.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.pieceSize) { space in
      while true {
        let count = Foundation.read(self.descriptor, space.baseAddress, space.count)
        if count >= 0 { return count }
        if errno == EAGAIN {
          // Somebody has made the pipe or the terminal non-blocking.
          var ready = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
          poll(&ready, 1, -1)
        } else if errno != EINTR {
          problem = errno
          return 0
        }
      }
    }
    guard problem == 0 else {
      throw Failure.usage("cannot read the request: \(String(cString: strerror(problem)))")
    }
    return count > 0 ? piece : nil
  }
}
