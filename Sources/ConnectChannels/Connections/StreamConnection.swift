package import Connect

/// One connection to a server, over any version of HTTP. It is confined to its event loop.
///
/// The pool counts streams: it opens no more than the connection said it can take.
package protocol StreamConnection: AnyObject {
  /// Whether the server has answered a call, or has promised to when it announced its end (GOAWAY without an error, which
  /// covers streams that are open). Such a connection has worked, however soon it ends.
  var hasServed: Bool { get }

  /// After how many streams the server ends the connection in order; nil if it has not said so.
  var renewalCount: Int? { get }

  /// Starts a stream. Never fails by itself, and calls the handler only after it has returned.
  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream

  /// Takes no more streams, lets the open ones finish, then closes.
  func drain()

  /// Closes now. Open streams fail with `error`.
  func close(failing error: ConnectError)
}

extension StreamConnection {
  package var renewalCount: Int? { nil }
}

/// Is told of a connection's events. Called on the connection's event loop, never from within a function of
/// ``StreamConnection``. The connection retains its delegate until it has reported its own end.
package protocol StreamConnectionDelegate: AnyObject {
  /// The connection takes streams, this many at the same time. First after the handshake, and again whenever
  /// the number changes (HTTP/2 SETTINGS). HTTP/1.1 says 1.
  func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int)

  /// A stream has ended, whichever way, and no longer counts.
  func connectionDidCloseStream(_ connection: any StreamConnection)

  /// The connection takes no more streams (GOAWAY, `connection: close`, spent stream ids); open ones may
  /// still finish. Also comes before the end of a stream that the connection takes with it.
  func connectionWillClose(_ connection: any StreamConnection)

  /// The connection is gone; all its streams have been told. `error` is nil if it was closed in order.
  func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?)

  /// Calls have timed out in silence, so the connection asks the server whether it is there. It should have no new streams
  /// until ``connectionIsAlive(_:)``. May be called from within a function of a stream.
  func connectionIsSuspect(_ connection: any StreamConnection)

  /// The server has answered.
  func connectionIsAlive(_ connection: any StreamConnection)

  /// The server of a connection that has taken calls before has answered for the first time. Told only by connections
  /// with early data.
  func connectionIsProven(_ connection: any StreamConnection)

  /// A ping was answered after this time.
  func connection(_ connection: any StreamConnection, roundTrip: Duration)

  /// A response has an `alt-svc` field (RFC 7838). Told only by connections that were made to look for it.
  func connection(_ connection: any StreamConnection, didReceiveAltSvc headers: Headers)

  /// The server has answered a call for the first time. Told only by connections over QUIC that were made to look for `alt-svc`.
  func connectionIsFit(_ connection: any StreamConnection)

  /// The connection is about to end: nothing comes from the server any more, or the server says that it is the wrong
  /// one. It need not be tried again soon in this version of HTTP.
  func connectionIsUnfit(_ connection: any StreamConnection, _ reason: String)
}

extension StreamConnectionDelegate {
  package func connectionIsSuspect(_ connection: any StreamConnection) {}
  package func connectionIsAlive(_ connection: any StreamConnection) {}
  package func connectionIsProven(_ connection: any StreamConnection) {}
  package func connection(_ connection: any StreamConnection, roundTrip: Duration) {}
  package func connection(_ connection: any StreamConnection, didReceiveAltSvc headers: Headers) {}
  package func connectionIsFit(_ connection: any StreamConnection) {}
  package func connectionIsUnfit(_ connection: any StreamConnection, _ reason: String) {}
}
