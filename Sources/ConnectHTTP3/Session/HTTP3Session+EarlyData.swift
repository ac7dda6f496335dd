internal import CNghttp3
internal import CNgtcp2
internal import Connect

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The requests of a connection that sends early data, until the server has shown that it is there.
///
/// Requests of methods without side effects are sent at once: an attacker who copies the datagrams can have the server process
/// them again (RFC 8446, section 8). All others are held back.
struct EarlyRequests {
  /// All that were started, in order. The number is bounded by what the server allowed before.
  var all: [(request: HTTPStreamRequest, stream: HTTP3Stream)] = []

  /// Those that are held back.
  var held: [HTTP3Stream] { self.all.lazy.map(\.stream).filter { $0.id < 0 && $0.handler != nil } }
}

extension HTTP3Session {
  /// Prepares for early data: streams can be opened before the handshake, once there is a key.
  ///
  /// - Throws: ``HTTP3SetupError`` if the ticket is of no use.
  func startEarly(with ticket: SessionTicket) throws {
    let result = connect_ngtcp2_set_early_params(
      self.connection,
      ticket.transport,
      ticket.transport.count
    )
    guard result == 0 else { throw HTTP3SetupError(quic: result) }
    guard self.startHTTP() else { throw HTTP3SetupError(reason: Self.text(http: self.httpError)) }
    self.early = EarlyRequests()
  }

  /// Whether the request may be sent now. If not, ``releaseEarly()`` sends it.
  func mayBeSentNow(_ request: HTTPStreamRequest, _ stream: HTTP3Stream) -> Bool {
    guard self.early != nil else { return true }
    self.early?.all.append((request, stream))
    guard request.hasNoSideEffects, !self.isEstablished, case .complete = request.body else { return false }
    stream.isEarly = true
    return true
  }

  /// Takes a stream out whose request is held back. Returns whether it was held back.
  func dropHeld(_ stream: HTTP3Stream) -> Bool {
    guard stream.id < 0, let index = self.early?.all.firstIndex(where: { $0.stream === stream }) else {
      return false
    }
    self.early?.all.remove(at: index)
    stream.isClosed = true
    return true
  }

  /// The handshake is complete: learns whether the server took the early data. If not, begins HTTP again.
  ///
  /// - Returns: Whether the connection can go on.
  func endEarly() -> Bool {
    guard let connection = self.connection, !self.tls.acceptedEarlyData else { return true }
    let result = connect_ngtcp2_reject_early_data(connection)
    guard result == 0 else {
      self.end(transportError: result)
      return false
    }
    if let http = self.http { nghttp3_conn_del(http) }
    self.http = nil
    self.blockedStreams.removeAll(keepingCapacity: true)
    for stream in self.streams.values {
      if stream.handler == nil {
        stream.isClosed = true
        stream.outbound.removeAll()
        self.events.append(.closed(stream))
      } else {
        stream.restart()
      }
    }
    self.streams = [:]
    return self.startHTTP()
  }

  /// Sends the requests that were held back, and those that the server has not taken.
  func releaseEarly() {
    guard let early = self.early.take() else { return }
    for (request, stream) in early.all where stream.id < 0 && stream.handler != nil {
      self.submit(request, for: stream)
    }
  }

  /// GnuTLS has a ticket.
  func didReceiveTicket() {
    guard let connection = self.connection, let tls = self.tls.takeSessionData() else { return }
    let transport = [UInt8](unsafeUninitializedCapacity: 1024) { bytes, count in
      count = max(0, connect_ngtcp2_get_early_params(connection, bytes.baseAddress, bytes.count))
    }
    guard !transport.isEmpty else { return }
    let ticket = SessionTicket(
      tls: tls,
      transport: transport,
      certificateExpiry: self.tls.certificateExpiry,
      receiptTime: time(nil),
      lifetime: self.tls.ticketLifetime
    )
    self.events.append(.ticket(ticket))
  }
}
