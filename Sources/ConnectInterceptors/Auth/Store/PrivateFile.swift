internal import Connect

#if canImport(Musl)
private import Musl
#else
private import Glibc
#endif

/// A small text file that only its owner can read. All functions block.
struct PrivateFile: Sendable {
  /// A token has some kilobytes at most. More is another file.
  static let maximumSize = 256 * 1024

  let path: String

  private var folder: String {
    guard let slash = self.path.lastIndex(of: "/") else { return "." }
    return slash == self.path.startIndex ? "/" : String(self.path[..<slash])
  }

  private var name: String { self.path.split(separator: "/").last.map(String.init) ?? "" }

  // MARK: Reading

  /// - Returns: Nil if there is no file.
  func read() throws(ConnectError) -> String? {
    try self.checkPath()
    // Without waiting for the other end of a named pipe.
    let descriptor = Int32(
      uninterrupted { Int(open(self.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)) }
    )
    guard descriptor >= 0 else {
      switch errno {
      case ENOENT: return nil
      case ELOOP: throw self.linkError
      default: throw self.failure("cannot be read", errno)
      }
    }
    defer { close(descriptor) }
    try self.check(descriptor)
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count = uninterrupted {
        chunk.withUnsafeMutableBytes { systemRead(descriptor, $0.baseAddress, $0.count) }
      }
      guard count >= 0 else { throw self.failure("cannot be read", errno) }
      guard count > 0 else { break }
      bytes += chunk[..<count]
      guard bytes.count <= Self.maximumSize else { throw self.sizeError }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ConnectError(
        code: .dataLoss,
        message: "\(self.path): the stored credentials are broken: they are not UTF-8. "
          + "If it is of no use, delete the file and log in again"
      )
    }
    return text
  }

  /// Checks the open file, not its name: whoever replaces the file in between changes nothing.
  private func check(_ descriptor: Int32) throws(ConnectError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw self.failure("cannot be read", errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw self.refusal("is not a regular file") }
    guard status.st_uid == geteuid() else {
      throw self.refusal(
        "belongs to the user with the id \(status.st_uid), and this process runs as \(geteuid()): "
          + "run chown, or use another file"
      )
    }
    guard status.st_mode & 0o077 == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      throw self.refusal(
        "may be used by other users (its mode is 0\(mode)): run chmod 600 on it. "
          + "If others may have read it, log out and in again"
      )
    }
    guard status.st_size <= Self.maximumSize else { throw self.sizeError }
  }

  // MARK: Writing

  /// Replaces the file by one with another text.
  ///
  /// - Parameter removingLeftovers: Whether to remove what processes that were killed have left. True only under a lock.
  func replace(with text: String, removingLeftovers: Bool) throws(ConnectError) {
    try self.checkPath()
    guard text.utf8.count <= Self.maximumSize else {
      throw self.refusal("would have more than \(Self.maximumSize) bytes, which is the limit for credentials")
    }
    try self.makeFolder()
    var status = stat()
    if lstat(self.path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { throw self.linkError }
    if removingLeftovers { self.removeLeftovers() }
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    let temporary = "\(self.folder)/\(self.leftoverPrefix)\(digits)\(Self.leftoverSuffix)"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw self.failure("cannot be written", errno) }
    var problem = Self.write(Array(text.utf8), to: descriptor)
    if close(descriptor) != 0, errno != EINTR, problem == nil { problem = errno }
    if problem == nil, rename(temporary, self.path) != 0 { problem = errno }
    if let problem {
      unlink(temporary)
      throw self.failure("cannot be written", problem)
    }
    try self.syncFolder()
  }

  /// - Returns: The number of the error; nil for none.
  private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
    // The process's mask may have taken bits away.
    guard fchmod(descriptor, 0o600) == 0 else { return errno }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = uninterrupted {
        rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
      }
      guard count >= 0 else { return errno }
      rest = rest.dropFirst(count)
    }
    return uninterrupted { Int(fsync(descriptor)) } == 0 ? nil : errno
  }

  /// - Parameter removingLeftovers: As in ``replace(with:removingLeftovers:)``: they hold tokens, too.
  func remove(removingLeftovers: Bool) throws(ConnectError) {
    try self.checkPath()
    var status = stat()
    if lstat(self.path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { throw self.linkError }
    if removingLeftovers { self.removeLeftovers() }
    if unlink(self.path) == 0 {
      try self.syncFolder()
    } else if errno != ENOENT {
      throw self.failure("cannot be removed", errno)
    }
  }

  /// Creates the folders that are missing, for their owner alone.
  func makeFolder() throws(ConnectError) {
    var path = self.folder.hasPrefix("/") ? "" : "."
    for part in self.folder.split(separator: "/") {
      path += "/\(part)"
      // Other errors than that it exists show when something is created in it.
      guard mkdir(path, 0o700) == 0 || errno == EEXIST || errno == EROFS || errno == EACCES else {
        throw self.failure("cannot be written", errno)
      }
    }
  }

  /// Brings the new name to the disk. Some file systems, and folders that cannot be read, have no way to do so.
  private func syncFolder() throws(ConnectError) {
    let descriptor = open(self.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS else {
      throw self.failure("was changed, but not brought to the disk", errno)
    }
  }

  // MARK: Leftovers

  private static let leftoverSuffix = ".tmp"
  private var leftoverPrefix: String { ".\(self.name)." }

  private func removeLeftovers() {
    guard let folder = opendir(self.folder) else { return }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: pointer.pointee)) {
          String(cString: $0)
        }
      }
      let digits = name.dropFirst(self.leftoverPrefix.count).dropLast(Self.leftoverSuffix.count)
      guard name == "\(self.leftoverPrefix)\(digits)\(Self.leftoverSuffix)", !digits.isEmpty,
        digits.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
      else { continue }
      unlink("\(self.folder)/\(name)")
    }
  }

  // MARK: Errors

  func checkPath() throws(ConnectError) {
    guard !self.name.isEmpty, !self.path.hasSuffix("/"), !self.path.utf8.contains(0) else {
      throw ConnectError(
        code: .failedPrecondition,
        message: "'\(self.path)' is not the path of a file for credentials"
      )
    }
  }

  private var linkError: ConnectError { self.refusal("is a symbolic link: use the path of the file itself") }

  private var sizeError: ConnectError {
    ConnectError(
      code: .dataLoss,
      message: "\(self.path) has more than \(Self.maximumSize) bytes, so it is not a file of credentials"
    )
  }

  private func refusal(_ problem: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: "the credentials' file \(self.path) \(problem)")
  }

  private func failure(_ problem: String, _ number: Int32) -> ConnectError {
    self.refusal("\(problem): \(String(cString: strerror(number)))")
  }
}

/// A system call, repeated if a signal interrupts it.
func uninterrupted(_ call: () -> Int) -> Int {
  while true {
    let result = call()
    if result >= 0 || errno != EINTR { return result }
  }
}

// Outside of the type, whose functions have the same names.

func systemRead(_ descriptor: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
  read(descriptor, bytes, count)
}

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}
