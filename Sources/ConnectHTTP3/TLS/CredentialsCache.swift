internal import ConnectNIO
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// GnuTLS's credentials for the TLS configurations of clients. They are made when they are first needed, and again when
/// the configuration's files have changed. That happens away from the event loops, since it takes milliseconds.
final class CredentialsCache: Sendable {
  private struct Entry {
    weak var context: TLSContext?
    var credentials: GnuTLSCredentials
  }

  private let entries = Mutex<[Entry]>([])

  /// Fails with ``HTTP3SetupError``.
  func credentials(for context: TLSContext, on eventLoop: any EventLoop) -> EventLoopFuture<
    GnuTLSCredentials
  > {
    let known = self.entries.withLock { entries in
      entries.removeAll { $0.context == nil }
      return entries.first { $0.context === context }?.credentials
    }
    if let known { return eventLoop.makeSucceededFuture(known) }
    return NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) {
      let credentials = try GnuTLSCredentials(context.material)
      return self.entries.withLock { entries in
        // Another event loop may have been faster. All have to use the same tickets.
        if let known = entries.first(where: { $0.context === context }) { return known.credentials }
        entries.append(Entry(context: context, credentials: credentials))
        return credentials
      }
    }
  }
}
