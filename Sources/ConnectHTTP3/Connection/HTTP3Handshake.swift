internal import CNgtcp2
internal import Connect
internal import ConnectNIO
internal import NIOCore

/// How far the handshake of a connection is. With early data, the connection takes requests before the end.
///
/// Confined to the connection's event loop.
final class HTTP3Handshake {
  private let state: ConnectionState
  weak var connection: HTTP3Connection?
  /// Is told once that the connection takes requests, or why it never will. After a failure, nobody hears of the connection
  /// any more.
  var onReady: ((Result<Void, ConnectError>) -> Void)?
  private(set) var isComplete = false
  /// Ends a handshake that takes too long.
  private var timer: Scheduled<Void>?

  init(_ state: ConnectionState) {
    self.state = state
  }

  var isGoingOn: Bool { self.state.phase != .closed && !self.isComplete }

  /// Whether the connection takes requests, and the handshake is complete.
  var isOver: Bool { self.state.phase == .active && self.isComplete }

  /// Gives up the handshake, with `error`, if it is not complete at `deadline`.
  func limit(to deadline: NIODeadline, _ error: @escaping () -> ConnectError) {
    self.timer?.cancel()
    self.timer = self.state.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
      self?.giveUp(error())
    }
  }

  func giveUp(_ error: ConnectError) {
    if self.isGoingOn { self.connection?.shutDown(error, sending: .noError) }
  }

  /// Gives up a connection that takes no requests yet.
  func abandon() {
    self.onReady = nil
    self.giveUp(ConnectError(code: .canceled, message: "the attempt to connect was given up"))
  }

  /// Early data can be sent, or the handshake is complete. Returns whether the connection has taken no requests before.
  func becomeReady() -> Bool {
    self.noteServer()
    guard self.state.phase == .connecting else { return false }
    self.state.phase = .active
    self.onReady.take()?(.success(()))
    return true
  }

  /// Returns as ``becomeReady()``.
  func didComplete() -> Bool {
    self.isComplete = true
    self.stopTimer()
    return self.becomeReady()
  }

  func stopTimer() { self.timer.take()?.cancel() }

  // MARK: The server

  /// Takes note of the server's certificates. With early data, they are those of the earlier session at first.
  private func noteServer() {
    guard let certificates = self.connection?.session.tls.certificates,
      self.state.facts.certificates !== certificates
    else { return }
    self.state.facts.didSecure(certificates, version: "TLS 1.3", applicationProtocol: "h3")
  }

  /// Lets the handshake go on, or end, when the program has decided about the server.
  func follow(_ tls: GnuTLSSession) {
    tls.onDecision = { [weak self] in
      guard let self, let connection = self.connection else { return }
      self.goOn(connection.session)
      connection.flush()
    }
  }

  private func goOn(_ session: HTTP3Session) {
    guard let connection = session.connection, session.ending == nil, session.tls.handle != nil else {
      return
    }
    let result = connect_ngtcp2_continue_handshake(connection.pointer)
    guard result == 0 else { return session.end(transportError: result) }
    guard session.tls.isFinished, !session.isEstablished else { return }
    // libngtcp2 looks whether the handshake is complete only when it reads. This is a packet that cannot be decrypted.
    let nothing: [UInt8] = [0x40] + Array(repeating: 0, count: 40)
    nothing.withUnsafeBytes { _ = session.receive($0, now: self.state.eventLoop.now.uptimeNanoseconds) }
  }
}
