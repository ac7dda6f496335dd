internal import Connect
internal import Dispatch
internal import Logging
internal import Synchronization

#if canImport(Musl)
private import Musl
#else
private import Glibc
#endif

/// A file with a token, which another program replaces: a projected service account token of Kubernetes, for example.
final class TokenFile: Sendable {
  /// When the token is read again.
  struct Rereading: Sendable {
    /// How long after the file was read calls begin to read it again.
    var interval: Duration
    /// How long a token is used when the file cannot be read again.
    var maximumAge: Duration
    /// A token that a server refuses is not read again before this time.
    var pause: Duration { min(.seconds(1), self.interval) }
  }

  private typealias Waiter = CheckedContinuation<Result<String, ConnectError>, Never>

  private struct State {
    /// The last failure, and when it was.
    var failure: (error: ConnectError, time: Duration)?
    /// When the file was read last; nil if it never was.
    var readTime: Duration?
    /// Those who wait for the reading under way; nil if there is none. A file system that hangs may keep a reading for long:
    /// there is no second one meanwhile.
    var waiting: [UInt64: Waiter]?
    var waitCount: UInt64 = 0
  }

  /// Proxies and servers take headers of a few kilobytes. More is another file.
  private static let maximumSize = 64 << 10

  private let path: String
  private let rereading: Rereading
  private let time: ElapsedTime
  private let logger: Logger
  private let state = Mutex(State())
  /// Reading may block, so no thread of the concurrency pool does it.
  private let queue = DispatchQueue(label: "ConnectInterceptors.TokenFile")

  init(path: String, _ rereading: Rereading, clock: any Clock<Duration>, logger: Logger) {
    self.path = path
    self.rereading = rereading
    self.time = ElapsedTime(on: clock)
    self.logger = logger
  }

  /// The token that the file has now. After a failure the file is left alone for a while. A task that is cancelled does not
  /// wait any more.
  func token() async throws(ConnectError) -> AccessToken {
    let now = self.time.now
    let (failure, wait) = self.state.withLock { state in
      state.waitCount += 1
      return (state.failure, state.waitCount)
    }
    if let failure, now - failure.time < self.rereading.pause { throw failure.error }
    let result = await withTaskCancellationHandler {
      await withCheckedContinuation { (waiter: Waiter) in
        let mustRead = self.state.withLock { state in
          let mustRead = state.waiting == nil
          state.waiting = state.waiting ?? [:]
          state.waiting?[wait] = waiter
          return mustRead
        }
        if mustRead { self.queue.async { self.read() } }
        if Task.isCancelled { self.leave(wait) }
      }
    } onCancel: {
      self.leave(wait)
    }
    return AccessToken(try result.get(), expiresIn: self.rereading.maximumAge)
  }

  private func leave(_ wait: UInt64) {
    let waiter = self.state.withLock { $0.waiting?.removeValue(forKey: wait) }
    waiter?.resume(returning: .failure(ConnectError(code: .canceled, message: "the reading was cancelled")))
  }

  private func read() {
    let result = Result { () throws(ConnectError) in try Self.text(of: self.path) }
    let now = self.time.now
    let (waiting, warning) = self.state.withLock { state in
      defer { state.waiting = nil }
      return (Array((state.waiting ?? [:]).values), self.note(result, now: now, &state))
    }
    if let warning { self.logger.warning("\(warning)") }
    for waiter in waiting { waiter.resume(returning: result) }
  }

  /// Remembers how a reading has ended.
  ///
  /// - Returns: What the log should say.
  private func note(_ result: Result<String, ConnectError>, now: Duration, _ state: inout State) -> String? {
    switch result {
    case .success:
      state.failure = nil
      state.readTime = now
      return nil
    case .failure(let error):
      let isNews = state.failure == nil
      state.failure = (error, now)
      guard isNews, let readTime = state.readTime else { return nil }
      let maximumAge = self.rereading.maximumAge
      let consequence =
        now - readTime < maximumAge
        ? "calls go on with the token that was read before, until it is \(maximumAge) old"
        : "the token that was read before is too old, so calls fail"
      return "\(error.message ?? ""); \(consequence)"
    }
  }

  // MARK: Reading

  private static func text(of path: String) throws(ConnectError) -> String {
    let bytes = try self.bytes(of: path)
    guard let text = String(validating: bytes, as: UTF8.self) else { throw self.broken(path, "is not UTF-8") }
    let token = text.drop(while: \.isWhitespace)
    let end = token.lastIndex { !$0.isWhitespace }
    guard let end else { throw self.broken(path, "is empty") }
    let trimmed = token[...end]
    guard !trimmed.contains(where: \.isNewline) else { throw self.broken(path, "has more than one line") }
    // What a header may have; a token has no more than that.
    guard trimmed.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else {
      throw self.broken(path, "has other characters than printable ASCII")
    }
    return String(trimmed)
  }

  private static func bytes(of path: String) throws(ConnectError) -> [UInt8] {
    guard !path.utf8.contains(0) else { throw self.unreadable(path, "its path has a zero byte") }
    // Follows symbolic links, by which Kubernetes exchanges files. Does not wait for the other end of a named pipe.
    let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK
    var descriptor = Int32(uninterrupted { Int(open(path, flags)) })
    // A link was followed to a folder that was then removed, perhaps.
    if descriptor < 0, errno == ENOENT { descriptor = Int32(uninterrupted { Int(open(path, flags)) }) }
    guard descriptor >= 0 else { throw self.unreadable(path, self.reason(errno)) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw self.unreadable(path, self.reason(errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw self.unreadable(path, "it is not a regular file") }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4 << 10)
    while true {
      let count = uninterrupted {
        chunk.withUnsafeMutableBytes { systemRead(descriptor, $0.baseAddress, $0.count) }
      }
      guard count >= 0 else { throw self.unreadable(path, self.reason(errno)) }
      guard count > 0 else { return bytes }
      bytes += chunk[..<count]
      guard bytes.count <= self.maximumSize else {
        throw self.broken(path, "has more than \(self.maximumSize) bytes")
      }
    }
  }

  // MARK: Errors

  private static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }

  /// It may be readable soon, as when it is being replaced.
  private static func unreadable(_ path: String, _ reason: String) -> ConnectError {
    ConnectError(
      code: .unavailable,
      message: "the token file \(path) cannot be read: \(reason). "
        + "Check the path, and that this process may read it"
    )
  }

  private static func broken(_ path: String, _ problem: String) -> ConnectError {
    ConnectError(
      code: .unauthenticated,
      message: "the token file \(path) \(problem): it must have the token on one line, and nothing else"
    )
  }
}
