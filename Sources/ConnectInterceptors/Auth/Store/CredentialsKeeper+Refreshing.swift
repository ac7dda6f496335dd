internal import Connect
internal import Synchronization

/// Refreshes of credentials with a store.
extension CredentialsKeeper {
  /// Gets a token from the store, or from the provider if the store has none that is new and valid.
  func refresh(_ refresh: CredentialsState.Refresh, of credentials: Credentials) async {
    do {
      // A store may be reached through the same client.
      try await CallContext.$current.withValue(credentials.context(within: CallContext())) {
        try await self.store.exclusively { try await self.load(refresh, for: credentials) }
      }
    } catch {
      credentials.finish(refresh, .failure(ConnectError(ofRefresh: error)), from: .store)
    }
  }

  private func load(_ refresh: CredentialsState.Refresh, for credentials: Credentials) async throws {
    guard credentials.ifRunning(refresh) else { return }
    var refresh = refresh
    switch try await self.read() {
    case .token(let stored, let isOtherUser):
      if let token = stored.token(at: self.now) {
        credentials.finish(refresh, .success(token), from: .store, isOtherUser: isOtherUser)
        return
      }
      (refresh.reason, refresh.previous) = (.expired, stored.token)
      // Also for the next refresh, if this one fails.
      credentials.ifRunning(refresh) { $0.lose(stored.token, .expired, isOtherUser: isOtherUser) }
    case .cleared:
      (refresh.reason, refresh.previous) = (.invalidated, nil)
      credentials.ifRunning(refresh) { $0.lose(nil, .invalidated, isOtherUser: true) }
    case .none:
      break
    }
    guard let result = await self.ask(refresh, of: credentials) else { return }
    if case .success = result, let change = try? await self.read() {
      // Others go on without the lock after its timeout: a logout, or another login, must not be undone.
      switch change {
      case .none, .token(_, isOtherUser: false): break
      case .token(_, isOtherUser: true): return self.end(refresh, of: credentials, because: "logged in")
      case .cleared: return self.end(refresh, of: credentials, because: "logged out")
      }
    }
    if credentials.finish(refresh, result) { await self.write() }
  }

  /// Asks the provider, and waits until it answers or the refresh is over. So a provider that hangs does not keep the lock
  /// of the store.
  private func ask(_ refresh: CredentialsState.Refresh, of credentials: Credentials) async
    -> RefreshAnswer.Value
  {
    let answer = RefreshAnswer()
    self.asked.withLock { asked in
      // A store may answer to a refresh that is over.
      if asked.map({ $0.refresh < refresh.id }) ?? true { asked = (refresh.id, answer) }
    }
    guard credentials.ifRunning(refresh) else { return nil }
    let task = Task(executorPreference: credentials.taskExecutor) {
      answer.give(await credentials.fetch(refresh))
    }
    let value = await withTaskCancellationHandler {
      await answer.value
    } onCancel: {
      task.cancel()
      answer.give(nil)
    }
    // The refresh is over without the provider.
    if value == nil { task.cancel() }
    return value
  }

  /// All refreshes up to this number have ended.
  func stopAsking(upTo refresh: UInt64) {
    let answer = self.asked.withLock { asked -> RefreshAnswer? in
      guard let ended = asked, ended.refresh <= refresh else { return nil }
      asked = nil
      return ended.answer
    }
    answer?.give(nil)
  }

  /// Another process has changed the user while the provider was asked.
  private func end(_ refresh: CredentialsState.Refresh, of credentials: Credentials, because what: String) {
    let error = ConnectError(
      code: .unauthenticated,
      message: "a user has \(what) in another process while the credentials were refreshed; call again"
    )
    credentials.finish(refresh, .failure(error), isOtherUser: true)
  }
}
