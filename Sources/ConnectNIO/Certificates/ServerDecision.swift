package import Connect
package import NIOCore

/// One question to the program's own verifier, in one handshake. Confined to the connection's event loop.
package final class ServerDecision {
  package enum State {
    case new, pending, accepted
    case refused(ConnectError)
    /// Nobody waits for it any more.
    case abandoned
  }

  package private(set) var state = State.new
  private let verifier: ServerVerifier
  private let server: ServerVerifier.Server
  private let peer: String
  private var task: Task<Void, Never>?
  private var onEnd: (() -> Void)?

  init(_ verifier: ServerVerifier, _ server: ServerVerifier.Server, peer: String) {
    self.verifier = verifier
    self.server = server
    self.peer = peer
  }

  package var isPending: Bool { if case .pending = self.state { true } else { false } }

  /// Why the server is refused; nil as long as it is not.
  package var refusal: ConnectError? { if case .refused(let error) = self.state { error } else { nil } }

  /// Asks. Calls `onEnd` in a later job of the event loop: once there is an answer, or once it is given up.
  package func ask(on eventLoop: any EventLoop, _ onEnd: @escaping () -> Void) {
    self.state = .pending
    self.onEnd = onEnd
    let decision = NIOLoopBound(self, eventLoop: eventLoop)
    let (verifier, server, peer) = (self.verifier, self.server, self.peer)
    self.task = Task {
      let refusal: ConnectError?
      do {
        try await verifier.verify(server)
        refusal = nil
      } catch {
        refusal = .refusedByServerVerifier(peer: peer, error)
      }
      // The event loop may have ended by now.
      guard !Task.isCancelled else { return }
      eventLoop.execute { decision.value.end(refusal.map { .refused($0) } ?? .accepted) }
    }
  }

  /// The connection is gone: an answer that comes later counts for nothing.
  package func abandon() { self.end(.abandoned) }

  private func end(_ state: State) {
    guard self.isPending else { return }
    self.state = state
    self.task.take()?.cancel()
    self.onEnd.take()?()
  }

  /// The error of a handshake that has taken too long, and waited for the program at the end.
  package static func timedOut(peer: String, after limit: Duration) -> ConnectError {
    .ofConnection(
      .unavailable,
      "TLS: the client's own verifier (serverVerifier) has not decided about \(peer) within \(limit)"
    )
  }
}
