public import Connect

/// A program's own part in deciding who a server is, for ``NIOHTTPClient/Configuration/TLS/serverVerifier``.
///
/// ```swift
/// var configuration = NIOHTTPClient.Configuration.defaults
/// configuration.tls.serverVerifier = ServerVerifier { server in
///   guard server.names.uris == ["spiffe://prod.example/billing"] else {
///     throw ConnectError(code: .unauthenticated, message: "this is not the billing service")
///   }
/// }
/// ```
///
/// It is asked in each full TLS handshake, over TCP and QUIC alike, after everything else that the configuration verifies,
/// and before the client shows its own certificate or sends a request. To return is to accept. To throw is to refuse: the
/// calls fail with `unavailable`, and the error has the message of what was thrown.
///
/// The time that it takes counts in the timeout to connect. When that is over, or nobody wants the connection any more, its
/// task is cancelled, and what it says then is ignored.
///
/// A connection that goes on with an earlier session (HTTP/3 with early data) does not ask it again: it has accepted the
/// server then, for the same host and port, with the same configuration and the same contents of its files.
///
/// Two verifiers are equal if one is a copy of the other.
public struct ServerVerifier: Sendable, Hashable {
  /// The server of one connection.
  public struct Server: Sendable, Hashable {
    /// The host of the origin that the connection is for.
    public var host: String
    /// The port of that origin.
    public var port: Int
    /// The verified chain, from the server's own certificate to the trusted one, in DER (RFC 5280). Where the configuration
    /// accepts any certificate, it is what the server has shown, its own certificate first, and proves nothing.
    public var certificates: [[UInt8]]
    /// The names in the server's own certificate.
    public var names: CertificateNames

    /// A server as given, for tests of verifiers.
    public init(host: String, port: Int, certificates: [[UInt8]], names: CertificateNames) {
      self.host = host
      self.port = port
      self.certificates = certificates
      self.names = names
    }
  }

  private final class Function: Sendable {
    let call: @Sendable (Server) async throws -> Void

    init(_ call: @escaping @Sendable (Server) async throws -> Void) {
      self.call = call
    }
  }

  private let function: Function

  /// A verifier that asks `verify`, which may be called several times at once, on any thread.
  public init(_ verify: @escaping @Sendable (Server) async throws -> Void) {
    self.function = Function(verify)
  }

  /// Asks about a server. Throws if it is refused.
  public func verify(_ server: Server) async throws { try await self.function.call(server) }

  /// Whether one is a copy of the other.
  public static func == (one: ServerVerifier, other: ServerVerifier) -> Bool {
    one.function === other.function
  }

  /// Hashes which verifier it is.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self.function)) }
}
