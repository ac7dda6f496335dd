#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Reads a whole file at once. Blocks the thread.
enum SmallFile {
  struct Failure: Swift.Error {
    /// In the system's words.
    var reason: String
  }

  static func bytes(of path: String, maximumSize: Int) throws(Failure) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw self.systemFailure() }
    defer { close(descriptor) }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = chunk.withUnsafeMutableBytes { chunk in
        #if canImport(Glibc)
        Glibc.read(descriptor, chunk.baseAddress, chunk.count)
        #elseif canImport(Musl)
        Musl.read(descriptor, chunk.baseAddress, chunk.count)
        #else
        Darwin.read(descriptor, chunk.baseAddress, chunk.count)
        #endif
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw self.systemFailure() }
      guard count > 0 else { return content }
      content += chunk[..<count]
      guard content.count <= maximumSize else {
        throw Failure(reason: "it has more than \(maximumSize) bytes")
      }
    }
  }

  private static func systemFailure() -> Failure {
    Failure(reason: strerror(errno).map { String(cString: $0) } ?? "error \(errno)")
  }
}
