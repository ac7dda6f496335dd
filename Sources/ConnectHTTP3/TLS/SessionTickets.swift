internal import Connect
internal import ConnectChannels
internal import ConnectNIO
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// What a client needs for early data on a new connection to a server (0-RTT).
struct SessionTicket: Sendable, Hashable {
  /// GnuTLS's session.
  let tls: [UInt8]
  /// What the server allowed, as libngtcp2 has it (RFC 9000, section 7.4.1).
  let transport: [UInt8]
  /// When the first certificate of the server's chain expires, or a revocation list that it was looked up in, in seconds since
  /// 1970. A connection with the ticket does not see the certificates again.
  var certificateExpiry = Int.max
  /// The server's certificates, which were judged when it began. The program is not asked about them again.
  var certificates: PeerCertificates?
  /// When it was received, in seconds since 1970.
  var receiptTime = 0
  /// How many seconds it may be used after that (RFC 8446, section 4.6.1).
  var lifetime = Int.max

  /// A handshake fails if GnuTLS 3.7 finds that its ticket is too old, since the early data was announced by then. The
  /// handshake begins a little later, hence the 5 seconds.
  func isUsable(at now: Int) -> Bool {
    let age = now - self.receiptTime
    return now < self.certificateExpiry && age >= 0 && age < self.lifetime - 5
  }
}

/// The newest ticket of each server. A ticket is used once (RFC 8446, appendix C.4), so a server that does not answer is
/// tried with early data once.
///
/// They belong to the TLS credentials: a session goes on with the trust that began it.
final class SessionTickets: Sendable {
  /// A server, as a client has verified it.
  struct Server: Sendable, Hashable {
    /// Who the program has accepted the server as.
    let origin: Origin
    let address: EndpointAddress
    /// What the server's certificate had to name.
    let identity: String
    /// Names the network that the client was in, where TCP is an alternative; nil otherwise. Another network may drop UDP.
    var network: Int?
  }

  private static let limit = 256

  /// Oldest first.
  private let tickets = Mutex<[(server: Server, ticket: SessionTicket)]>([])

  func store(_ ticket: SessionTicket, of server: Server) {
    self.tickets.withLock { tickets in
      tickets.removeAll { $0.server == server }
      if tickets.count == Self.limit { tickets.removeFirst() }
      tickets.append((server, ticket))
    }
  }

  /// HTTP/3 has stopped working there.
  func remove(of server: Server) {
    self.tickets.withLock { tickets in tickets.removeAll { $0.server == server } }
  }

  /// - Parameter now: In seconds since 1970.
  func take(of server: Server, now: Int = time(nil)) -> SessionTicket? {
    let ticket = self.tickets.withLock { tickets in
      tickets.firstIndex { $0.server == server }.map { tickets.remove(at: $0).ticket }
    }
    return ticket.flatMap { $0.isUsable(at: now) ? $0 : nil }
  }
}
