package import Connect
internal import NIOCore

/// Which hosts the server of a connection may be called by: those that its certificate names (gRFC A81).
///
/// The certificate was verified for the connection's own host. Calls that ask for another host go over the same connection, if
/// the certificate is one for that host, too.
package struct AuthorityCheck {
  private let peer: String
  private let names: () -> PresentedIdentifiers?
  private let text: (PresentedIdentifiers) -> String?

  /// - Parameters:
  ///   - peer: The server, for errors.
  ///   - names: Those of the server's verified certificate; nil to allow anything. Asked for each call that has an authority of
  ///     its own.
  ///   - text: The names for people; nil if there are none.
  package init(
    of peer: String,
    names: @escaping () -> PresentedIdentifiers?,
    text: @escaping (PresentedIdentifiers) -> String?
  ) {
    self.peer = peer
    self.names = names
    self.text = text
  }

  /// Why a call with this authority must not be sent to the server; nil if it may be.
  package func refusal(of authority: String) -> ConnectError? {
    guard let names = self.names() else { return nil }
    // What is no host and port was refused before.
    if let parsed = try? Authority(ofCall: authority), let host = try? ReferenceIdentifier(parsed.host),
      host.matches(names)
    {
      return nil
    }
    let known = self.text(names).map { "is for \($0)" } ?? "names no host"
    var error = ConnectError(
      code: .unavailable,
      message: """
        the call was not sent: its authority is '\(authority)', and the certificate of \(self.peer) \(known)
        """
    ).asFinal
    // Other calls may well be sent to this server: it has not failed.
    error.isUnsent = true
    return error
  }
}

/// A call that no connection takes.
final class RefusedStream: HTTPStream {
  private var handler: (any HTTPStreamHandler)?

  init(_ error: ConnectError, _ handler: any HTTPStreamHandler, on executor: any CallExecutor) {
    self.handler = handler
    let stream = Confined(self, to: executor)
    executor.execute {
      stream.value.handler.take()?.streamDidFail(HTTPStreamFailure(error: error))
    }
  }

  func write(_ bytes: ByteBuffer) {}
  func finish(trailers: Headers) {}
  func consume(_ count: Int) {}
  func cancel() { self.handler = nil }
}
