internal import Synchronization

/// A ``CredentialStore`` in memory: for tests, and for a login that ends with the process.
public final class MemoryCredentialStore: CredentialStore {
  private let token: Mutex<StoredToken?>

  /// - Parameter token: What is stored in the beginning; nil for nothing.
  public init(_ token: StoredToken? = nil) {
    self.token = Mutex(token)
  }

  public func load() -> StoredToken? { self.token.withLock { $0 } }

  public func save(_ token: StoredToken) { self.token.withLock { $0 = token } }

  public func clear() { self.token.withLock { $0 = nil } }
}
