/// The server's view of one request, so far.
public struct RequestRecord: Sendable {
  public enum Version: String, Sendable {
    case http1 = "1.1"
    case http2 = "2"
  }

  /// How a request and its response ended.
  public enum Outcome: Sendable, Equatable {
    /// The server has written the whole response.
    case completed
    /// The client reset the stream before the response was complete; the HTTP/2 error code.
    case resetByClient(UInt32)
    /// The connection was closed before the response was complete, and not by the server.
    case connectionClosed
    /// The server reset the stream or closed the connection on purpose.
    case endedByServer
  }

  /// The request's number at its server, from 0.
  public let id: Int
  /// The connection's number at its server, from 0.
  public let connection: Int
  public let version: Version
  public let method: String
  /// The path without the query.
  public let path: String
  /// What follows the question mark; empty if there is none.
  public let query: String
  /// The request's headers; for HTTP/2 with `host` in place of `:authority`.
  public let headers: HeaderFields
  /// The request's trailers.
  public internal(set) var trailers = HeaderFields()
  /// Bytes of the request's body that have arrived.
  public internal(set) var bytesReceived = 0
  /// Whether the client has finished the request.
  public internal(set) var isRequestComplete = false
  /// The code of a client's reset, even if it came after the response was complete.
  public internal(set) var resetCode: UInt32?
  /// Bytes of the response's body that were written to the connection.
  public internal(set) var bytesWritten = 0
  /// Set once; nil while the response is incomplete and the client still waits for it.
  public internal(set) var outcome: Outcome?
}
