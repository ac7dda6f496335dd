/// Where ``Credentials`` keep their token, so that a login survives a restart of the process: ``FileCredentialStore``,
/// ``MemoryCredentialStore``, or a keyring or a database of your own.
///
/// One store is for one user. ``Credentials`` read it before each refresh. If another process has stored a token in the
/// meantime, they use that token and do not ask the provider. So a refresh token that may be used only once is used once,
/// if ``exclusively(_:)`` excludes other processes.
///
/// An error that a store throws on ``load()`` fails the calls that wait for a token: a `ConnectError` as it is, any other
/// error as the cause of `unauthenticated`. The provider is not asked, since the user may well be logged in. An error of
/// ``save(_:)`` or ``clear()`` is logged as a warning, and calls go on with the token in memory. Errors get into logs, so
/// they must not contain secrets.
///
/// The functions run in tasks of the credentials, never on an event loop. One that blocks its thread should do so on a
/// thread of its own. A call that waits for one waits no longer than its deadline, its cancellation and
/// ``Credentials/Configuration/refreshTimeout`` allow.
public protocol CredentialStore: Sendable {
  /// What was saved last.
  ///
  /// - Returns: Nil if nothing was saved, or if it was cleared: nobody is logged in.
  /// - Throws: If that is unknown, for example because what is stored cannot be read.
  func load() async throws -> StoredToken?

  /// Replaces what is stored, as a whole or not at all.
  func save(_ token: StoredToken) async throws

  /// Removes what is stored. It is no error if there is nothing.
  func clear() async throws

  /// Runs `body` while no other process, and no other object with the same storage, runs a body. A body loads a token,
  /// perhaps fetches a new one, and saves that. Other bodies should not wait forever for a process that hangs.
  ///
  /// By default it runs the body and excludes nobody: for stores that one process uses.
  func exclusively<Result: Sendable>(
    _ body: @Sendable () async throws -> Result
  ) async throws -> Result
}

extension CredentialStore {
  public func exclusively<Result: Sendable>(
    _ body: @Sendable () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}
