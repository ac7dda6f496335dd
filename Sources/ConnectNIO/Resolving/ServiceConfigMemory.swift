internal import Connect
internal import ConnectChannels
internal import Logging

/// The service config of one watch: which of the choices in DNS it takes, and the last good one.
///
/// `@unchecked Sendable`: what changes is touched on the executor of the watch alone.
final class ServiceConfigMemory: @unchecked Sendable {
  /// For choices that are meant for a part of all clients: the same for all looks of a watch.
  private let random = Int.random(in: 0..<100)
  private var lastGood: String?

  /// - Parameter outcome: What the look for TXT records has brought.
  /// - Returns: The service config to use: none if servers say that there is none. It is the last good one if servers
  ///   could not be asked, or if theirs cannot be read.
  func update(
    _ outcome: StubResolutionRun.Outcome,
    _ hostname: String,
    _ origin: Origin,
    _ logger: Logger
  ) -> String? {
    do {
      let choices = try ServiceConfigChoices(texts: outcome.get().texts)
      self.lastGood = choices?.select(hostname: hostname, random: self.random)
    } catch let error as ResolutionError where error.isNegative {
      self.lastGood = nil
    } catch {
      logger.warning(
        "the service config in DNS cannot be used",
        metadata: ["origin": "\(origin)", "error": "\(error)"]
      )
    }
    return self.lastGood
  }
}
