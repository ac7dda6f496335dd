internal import Connect
internal import ConnectChannels

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// The files that a TLS configuration names, as they were when they were read.
struct TLSFiles {
  /// The identity of a file by `stat`. Another identity means that the file may have changed.
  private struct Identity: Equatable {
    var device: UInt64
    var inode: UInt64
    var size: Int64
    /// Since 1970.
    var modified: Duration
    /// Since 1970. Also tells of changed permissions.
    var changed: Duration

    init?(path: String) {
      var facts = stat()
      // Follows symbolic links, by which files are often exchanged.
      guard stat(path, &facts) == 0 else { return nil }
      self.device = UInt64(truncatingIfNeeded: facts.st_dev)
      self.inode = UInt64(truncatingIfNeeded: facts.st_ino)
      self.size = Int64(facts.st_size)
      #if canImport(Darwin)
      let (modified, changed) = (facts.st_mtimespec, facts.st_ctimespec)
      #else
      let (modified, changed) = (facts.st_mtim, facts.st_ctim)
      #endif
      self.modified = Duration(modified)
      self.changed = Duration(changed)
    }

    /// Whether the file was left alone for so long that another change would show. Clocks of file systems are
    /// coarse: two changes within a tick look like one.
    func isSettled(at now: Duration) -> Bool {
      max(self.modified, self.changed) + .seconds(2) < now
    }
  }

  /// Nothing that TLS needs is as large.
  private static let maximumSize = 16 << 20

  private var identities: [String: Identity] = [:]
  private var contents: [String: Result<[UInt8], ConnectError>] = [:]
  private var isSettled = true

  /// Reads the files. What cannot be read fails when it is asked for.
  init(paths: [String]) {
    let now = Duration.seconds(time(nil))
    for path in paths {
      // First the identity: if the file changes while it is being read, the next look will show it.
      self.identities[path] = Identity(path: path)
      if self.identities[path]?.isSettled(at: now) == false { self.isSettled = false }
      self.contents[path] = Result { () throws(ConnectError) in try Self.read(path) }
    }
  }

  /// Whether the files may have changed since they were read, or can be read now when they could not be.
  var mayHaveChanged: Bool {
    guard self.isSettled else { return true }
    for case .failure in self.contents.values { return true }
    return self.contents.keys.contains { Identity(path: $0) != self.identities[$0] }
  }

  /// Whether the files have the same contents as in `other`.
  func hasSameContents(as other: TLSFiles) -> Bool {
    self.contents.count == other.contents.count
      && self.contents.allSatisfy { path, content in
        switch (content, other.contents[path]) {
        case (.success(let mine), .success(let others)): mine == others
        case (.failure(let mine), .failure(let others)): mine.message == others.message
        default: false
        }
      }
  }

  /// The content of a file.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition`, which names the file, if it could not be read.
  func bytes(of path: String) throws(ConnectError) -> [UInt8] {
    guard let content = self.contents[path] else { throw Self.error(path, "was not read") }
    return try content.get()
  }

  private static func error(_ path: String, _ reason: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: "the file \(path) cannot be read: \(reason)")
  }

  private static func read(_ path: String) throws(ConnectError) -> [UInt8] {
    do throws(SmallFile.Failure) {
      return ByteOrderMark.removed(from: try SmallFile.bytes(of: path, maximumSize: self.maximumSize))
    } catch {
      throw self.error(path, error.reason)
    }
  }
}
