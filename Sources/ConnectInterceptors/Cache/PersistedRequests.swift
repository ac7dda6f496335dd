internal import Connect
internal import Synchronization

/// Remembers which servers may answer a large request by its hash alone; see ``PersistedRequestInterceptor``.
/// Made once, and shared by the calls of any number of clients.
public final class PersistedRequests: Sendable {
  /// How many servers without the extension are remembered.
  private static let maximumOrigins = 256

  /// Requests of fewer bytes are sent whole at once.
  public let minimumByteCount: Int
  /// How long a server that turned out not to have the extension is not tried again.
  public let pause: Duration
  private let time: ElapsedTime
  /// Servers without the extension, and until when they are not tried.
  private let lacking = Mutex<[Origin: Duration]>([:])

  /// Nothing is known of any server yet.
  ///
  /// - Parameters:
  ///   - minimumByteCount: See ``minimumByteCount``.
  ///   - pause: See ``pause``.
  ///   - clock: The time for `pause`.
  public init(
    minimumByteCount: Int = 1024,
    pause: Duration = .seconds(600),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    self.minimumByteCount = minimumByteCount
    self.pause = pause
    self.time = ElapsedTime(on: clock)
  }

  func mayTry(_ origin: Origin) -> Bool {
    let now = self.time.now
    return self.lacking.withLock { lacking in
      guard let end = lacking[origin] else { return true }
      guard now >= end else { return false }
      lacking[origin] = nil
      return true
    }
  }

  func noteLack(at origin: Origin) {
    let end = self.time.now + self.pause.clamped
    self.lacking.withLock { lacking in
      if lacking.count >= Self.maximumOrigins { lacking.removeAll() }
      lacking[origin] = end
    }
  }
}
