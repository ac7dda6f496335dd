internal import Synchronization

#if canImport(Musl)
private import Musl
#else
private import Glibc
#endif

/// An advisory lock beside a file, or the lack of one.
final class FileLock: Sendable {
  /// The lock that the present task runs under.
  @TaskLocal static var current: FileLock?

  private let path: String
  /// Nil if there is no lock, or not any more.
  private let descriptor: Mutex<Int32?>
  private let isReleased = Atomic(false)

  /// - Parameters:
  ///   - path: The file that the lock is for.
  ///   - descriptor: The locked file; nil for work without a lock.
  init(_ path: String, descriptor: Int32?) {
    self.path = path
    self.descriptor = Mutex(descriptor)
  }

  deinit { self.release() }

  /// Whether work under this lock needs no other lock for a file. A task may outlive the work that it was started in.
  func covers(_ path: String) -> Bool {
    self.path == path && !self.isReleased.load(ordering: .acquiring)
  }

  /// Whether no other process writes a file now.
  func isHeld(for path: String) -> Bool {
    self.path == path && self.descriptor.withLock { $0 != nil }
  }

  /// Ends the work under the lock.
  func release() {
    self.isReleased.store(true, ordering: .releasing)
    if let descriptor = self.descriptor.withLock({ $0.take() }) { close(descriptor) }
  }

  /// Tries to get the lock. May block for as long as the file system does.
  ///
  /// - Returns: Nil if somebody else has the lock; an object without a lock if there can be none.
  static func attempt(for file: PrivateFile) -> FileLock? {
    // A path that is none fails when the file is used.
    guard (try? file.checkPath()) != nil else { return FileLock(file.path, descriptor: nil) }
    // A folder that cannot be created fails when something is saved in it.
    try? file.makeFolder()
    let descriptor = open(file.path + ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { return FileLock(file.path, descriptor: nil) }
    var status: Int32
    repeat { status = flock(descriptor, LOCK_EX | LOCK_NB) } while status != 0 && errno == EINTR
    if status == 0 { return FileLock(file.path, descriptor: descriptor) }
    let isBusy = errno == EWOULDBLOCK
    close(descriptor)
    return isBusy ? nil : FileLock(file.path, descriptor: nil)
  }
}
