internal import Connect
internal import Dispatch

/// A ``CredentialStore`` in a file that only its owner can read, for one or several processes of a user.
///
/// ```swift
/// let store = FileCredentialStore(path: "/home/ada/.config/tool/credentials.json")
/// let credentials = Credentials(for: ["api.example.com"], store: store) { refresh in
///   let old = refresh.previous?.refreshToken
///   let response = try await login.getToken(.with { $0.refreshToken = old })
///   return AccessToken(
///     response.token,
///     refreshToken: response.refreshToken ?? old,
///     expiresIn: .seconds(response.expiresIn)
///   )
/// }
/// ```
///
/// The file has the mode 0600 from its creation on. It is replaced as a whole: a new file is written beside it, brought
/// to the disk, and renamed. So processes that share it, and a process or a machine that ends at any time, leave the
/// former contents or the new ones. Missing folders are created with mode 0700.
///
/// ``load()`` refuses a file that others may read, that belongs to another user, that is a symbolic link or no regular
/// file, that is larger than 256 KiB, or whose contents are broken. These are errors and no logout; their messages say
/// what to do. A missing file means that nobody is logged in.
///
/// The text is not encrypted. Whoever may read the user's files, as root may, can use it.
public final class FileCredentialStore: CredentialStore {
  /// The path of the file. A relative path is relative to the process's working folder; `~` has no meaning.
  public let path: String
  /// How long to wait for another process that has the lock; see ``exclusively(_:)``.
  public let lockTimeout: Duration
  private let clock: any Clock<Duration>
  /// Reading and writing may block, so no thread of the concurrency pool does it.
  private let queue = DispatchQueue(label: "ConnectInterceptors.FileCredentialStore")

  /// - Parameters:
  ///   - path: See ``path``.
  ///   - lockTimeout: See ``lockTimeout``; 10 s by default.
  ///   - clock: The time for `lockTimeout`.
  public init(
    path: String,
    lockTimeout: Duration = .seconds(10),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.path = path
    self.lockTimeout = lockTimeout
    self.clock = clock
  }

  /// Reads the file.
  ///
  /// - Throws: `failed_precondition` if the file cannot or must not be read, `data_loss` if its contents are broken.
  public func load() async throws -> StoredToken? {
    guard let text = try await self.onQueue({ try $0.read() }) else { return nil }
    do {
      return try StoredToken(encoded: text)
    } catch {
      throw ConnectError(
        code: error.code,
        message: "\(self.path): \(error.message ?? ""). If it is of no use, delete the file and log in again"
      )
    }
  }

  /// Replaces the file.
  ///
  /// - Throws: `failed_precondition` if that is impossible. The former contents stay then.
  public func save(_ token: StoredToken) async throws {
    try await self.exclusively {
      let isLocked = FileLock.current?.isHeld(for: self.path) ?? false
      try await self.onQueue { try $0.replace(with: token.encoded, removingLeftovers: isLocked) }
    }
  }

  /// Removes the file.
  ///
  /// - Throws: `failed_precondition` if that is impossible.
  public func clear() async throws {
    try await self.exclusively {
      let isLocked = FileLock.current?.isHeld(for: self.path) ?? false
      try await self.onQueue { try $0.remove(removingLeftovers: isLocked) }
    }
  }

  /// Runs `body` while it holds an advisory lock (`flock`) of the file `path` + `.lock`, which stays. The system releases
  /// the lock of a process that ends.
  ///
  /// A process that hangs must not log out all others. So after ``lockTimeout`` the body runs without the lock, as it does
  /// where the lock file cannot be created or the file system has no locks. Files are whole nevertheless.
  ///
  /// - Throws: What `body` throws, and `CancellationError` if the task is cancelled while it waits.
  public func exclusively<Result: Sendable>(
    _ body: @Sendable () async throws -> Result
  ) async throws -> Result {
    if let lock = FileLock.current, lock.covers(self.path) { return try await body() }
    let lock = try await self.lock()
    defer { lock.release() }
    return try await FileLock.$current.withValue(lock) { try await body() }
  }

  /// Waits for the lock. It asks again and again, since a thread that waits in `flock` cannot be cancelled.
  private func lock() async throws -> FileLock {
    let time = ElapsedTime(on: self.clock)
    var pause = Duration.milliseconds(1)
    while true {
      if let lock = try await self.onQueue({ FileLock.attempt(for: $0) }) { return lock }
      guard time.now < self.lockTimeout.clamped else { return FileLock(self.path, descriptor: nil) }
      try await self.clock.sleep(for: pause)
      pause = min(pause * 2, .milliseconds(50))
    }
  }

  private func onQueue<Value: Sendable>(
    _ work: @escaping @Sendable (PrivateFile) throws -> Value
  ) async throws -> Value {
    let file = PrivateFile(path: self.path)
    return try await withCheckedThrowingContinuation { continuation in
      self.queue.async { continuation.resume(with: Result { try work(file) }) }
    }
  }
}
