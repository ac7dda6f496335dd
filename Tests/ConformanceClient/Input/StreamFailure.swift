internal import Glibc

/// Why standard input or output cannot be used any more.
struct StreamFailure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }

  init(_ description: String, errno: Int32) {
    self.description = "\(description): \(String(cString: strerror(errno)))"
  }
}
