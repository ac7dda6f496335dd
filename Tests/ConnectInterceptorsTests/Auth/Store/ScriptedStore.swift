import Connect
import ConnectInterceptors
import ConnectTesting

/// A store in memory that fails or hangs when a test says so.
final class ScriptedStore: CredentialStore {
  enum Trouble {
    case error(any Error)
    case hangs
  }

  struct Failure: Error {}

  let held: Observed<StoredToken?>
  let loadTrouble = Observed<Trouble?>(nil)
  let saveTrouble = Observed<Trouble?>(nil)
  let clearTrouble = Observed<Trouble?>(nil)
  let loads = Observed(0)
  let saves = Observed(0)
  let clears = Observed(0)

  init(_ token: StoredToken? = nil) {
    self.held = Observed(token)
  }

  private func meet(_ trouble: Observed<Trouble?>) async throws {
    switch trouble.value {
    case .error(let error): throw error
    case .hangs:
      // Whatever the task's cancellation.
      let wait = Task.detached {
        _ = await trouble.wait(within: .seconds(60)) { trouble -> Bool? in
          if case .hangs = trouble { nil } else { true }
        }
      }
      await wait.value
    case nil: break
    }
  }

  func load() async throws -> StoredToken? {
    self.loads.update { $0 += 1 }
    try await self.meet(self.loadTrouble)
    return self.held.value
  }

  func save(_ token: StoredToken) async throws {
    self.saves.update { $0 += 1 }
    try await self.meet(self.saveTrouble)
    self.held.update { $0 = token }
  }

  func clear() async throws {
    self.clears.update { $0 += 1 }
    try await self.meet(self.clearTrouble)
    self.held.update { $0 = nil }
  }
}
