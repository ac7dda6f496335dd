internal import Synchronization

/// Remembers what ``ClientSystem`` was told, and whether there are clients.
package final class ClientRegistry: Sendable {
  /// What all clients have.
  package struct Settings: Sendable {
    package var interceptors: [InterceptorFactory]
    /// Hears of channels. Its type is that of a module which builds on this one.
    package var channelObserver: (any Sendable)?
    package var includesTestDoubles: Bool

    package init(
      interceptors: [InterceptorFactory],
      channelObserver: (any Sendable)? = nil,
      includesTestDoubles: Bool
    ) {
      self.interceptors = interceptors
      self.channelObserver = channelObserver
      self.includesTestDoubles = includesTestDoubles
    }
  }

  private struct State {
    var settings: Settings?
    var hasClients = false
    var hasTestDoubles = false
  }

  private static let process = ClientRegistry()

  /// The registry of new clients: that of the process. Tests of the registry have their own.
  @TaskLocal package static var current = ClientRegistry.process

  private let state = Mutex(State())

  package init() {}

  package func bootstrap(_ settings: Settings) throws(ConnectError) {
    try self.state.withLock { (state) throws(ConnectError) in
      guard state.settings == nil else {
        throw Self.error("it was called before: call it once in a process, with all that its clients need")
      }
      guard !state.hasClients, !(settings.includesTestDoubles && state.hasTestDoubles) else {
        throw Self.error(
          "there was a client before, which would be without it: call it first, when the program starts"
        )
      }
      state.settings = settings
    }
  }

  /// What a new client has. From now on, nothing can be set.
  ///
  /// - Parameter isTestDouble: Whether it is a test double, or makes its calls with one.
  package func settings(isTestDouble: Bool) -> Settings? {
    self.state.withLock { state in
      if isTestDouble {
        state.hasTestDoubles = true
      } else {
        state.hasClients = true
      }
      guard let settings = state.settings, settings.includesTestDoubles || !isTestDouble else { return nil }
      return settings
    }
  }

  private static func error(_ problem: String) -> ConnectError {
    ConnectError(
      code: .failedPrecondition,
      message: "ClientSystem.bootstrap has set nothing, since \(problem)"
    )
  }
}
