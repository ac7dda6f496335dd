/// What interceptors do on purpose, so that it is no alarm (``InterceptorExplorer/allowing(_:)``).
public struct ExplorationAllowance: OptionSet, Sendable, Hashable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// Calls may succeed although the server has failed them, or was not asked: fallbacks, caches.
  public static let recovery = ExplorationAllowance(rawValue: 1 << 0)
  /// Calls may fail although the server has not failed them: validation, limiters, circuit breakers.
  public static let failure = ExplorationAllowance(rawValue: 1 << 1)
  /// Messages may be changed, added or left out.
  public static let changedMessages = ExplorationAllowance(rawValue: 1 << 2)
  /// Headers and trailers of responses may be missing, doubled, or from earlier attempts. Later attempts may repeat request headers.
  public static let changedMetadata = ExplorationAllowance(rawValue: 1 << 3)
  /// A call may get the response of another call with another request, or send that request in the place of its own.
  public static let sharedResponses = ExplorationAllowance(rawValue: 1 << 4)
  /// Work may go on after the calls have ended: refreshes, pollers, timers that nobody stops.
  public static let backgroundWork = ExplorationAllowance(rawValue: 1 << 5)
  /// Interceptors may live on after their call, or serve several calls.
  public static let sharedInstances = ExplorationAllowance(rawValue: 1 << 6)
  /// Calls may end only by their deadline or cancellation, although nothing but an interceptor holds them.
  public static let endlessCalls = ExplorationAllowance(rawValue: 1 << 7)
  /// Calls may make more than ten attempts.
  public static let manyAttempts = ExplorationAllowance(rawValue: 1 << 8)
}

extension ExplorationAllowance: CustomStringConvertible {
  private static let names: [(ExplorationAllowance, String)] = [
    (.recovery, ".recovery"), (.failure, ".failure"),
    (.changedMessages, ".changedMessages"), (.changedMetadata, ".changedMetadata"),
    (.sharedResponses, ".sharedResponses"), (.backgroundWork, ".backgroundWork"),
    (.sharedInstances, ".sharedInstances"), (.endlessCalls, ".endlessCalls"),
    (.manyAttempts, ".manyAttempts"),
  ]

  /// As in code, for example `.recovery, .failure`; `[]` for nothing.
  public var description: String {
    self.isEmpty ? "[]" : Self.names.filter { self.contains($0.0) }.map(\.1).joined(separator: ", ")
  }
}
