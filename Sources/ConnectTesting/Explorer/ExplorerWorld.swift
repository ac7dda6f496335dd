internal import Connect

/// The world of one schedule: its time, and the things that code under test waits for.
///
/// All state of the interceptors is to be made in the world's closure (``InterceptorExplorer/init(_:)``), so that schedules
/// do not see one another.
///
/// All functions may be called from any thread. Outside of the exploration's thread, their order is left to chance, and time may
/// move on before they return. After the end of a schedule, steps and sleeps throw `CancellationError`, and cancel their task:
/// nobody needs it any more.
public struct ExplorerWorld: Sendable {
  let run: ExplorerRun

  /// The virtual time as a `Clock`. Sleeping takes no real time.
  public var clock: VirtualClock { VirtualClock(self.run.executor, supervisor: self.run.supervisor) }

  /// The virtual time since the start of the schedule.
  public var now: Duration { self.run.executor.now }

  /// Something that takes time elsewhere, such as a token endpoint or a database. To be called by the fakes of a test. The
  /// explorer chooses when it returns: at once, after other work, or much later.
  ///
  /// ```swift
  /// let store = TokenStore {
  ///   try await world.step("token endpoint")
  ///   return world.token()
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: Of what is waited for, for the story.
  ///   - canFail: Whether it throws ``ExplorerStepFailure`` in some schedules. False by default.
  /// - Throws: `CancellationError` if the task is cancelled, else ``ExplorerStepFailure``.
  public func step(_ name: String, canFail: Bool = false) async throws {
    try await self.run.step(name, canFail: canFail)
  }

  /// A new text with each use: `token-1`, `token-2` and so on.
  public func token() -> String { self.run.makeToken() }

  /// Adds a line to the story of a failure.
  public func note(_ text: String) { self.run.note(text) }
}

/// A step failed because the explorer chose so.
public struct ExplorerStepFailure: Error, Hashable, CustomStringConvertible {
  /// The name of the step.
  public let step: String

  public var description: String { "the explorer has failed the step “\(self.step)”" }
}
