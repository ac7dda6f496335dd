internal import ConnectChannels
internal import Synchronization

/// What a client needs for early data on a new connection to a server (0-RTT).
struct SessionTicket: Sendable, Hashable {
  /// GnuTLS's session.
  let tls: [UInt8]
  /// What the server allowed, as libngtcp2 has it (RFC 9000, section 7.4.1).
  let transport: [UInt8]
}

/// The newest ticket of each server. A ticket is used once (RFC 8446, appendix C.4), so a server that does not answer is
/// tried with early data once.
///
/// They belong to the TLS credentials: a session goes on with the trust that began it.
final class SessionTickets: Sendable {
  /// A server, as a client has verified it.
  struct Server: Sendable, Hashable {
    let address: EndpointAddress
    /// What the server's certificate had to name.
    let identity: String
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

  func take(of server: Server) -> SessionTicket? {
    self.tickets.withLock { tickets in
      tickets.firstIndex { $0.server == server }.map { tickets.remove(at: $0).ticket }
    }
  }
}
