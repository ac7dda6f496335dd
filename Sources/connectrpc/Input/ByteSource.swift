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

  /// Says on standard error that standard input has data which nobody reads. It may come later than the program starts,
  /// so this is best asked at the end, too.
  static func noteUnreadInput() {
    guard self.hasInput else { return }
    Console.note("standard input is not read without -d @-, so the request is empty")
  }

  /// Whether there is data in a pipe or a file. Terminals are for streams and shells.
  private static var hasInput: Bool {
    var status = stat()
    guard fstat(0, &status) == 0 else { return false }
    switch status.st_mode & S_IFMT {
    case S_IFIFO, S_IFSOCK:
      var count: CInt = 0
      return ioctl(0, UInt(FIONREAD), &count) == 0 && count > 0
    case S_IFREG:
      let place = lseek(0, 0, SEEK_CUR)
      return place >= 0 && place < status.st_size
    default:
      return false
    }
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
