internal import CQUICPeer
internal import XCTest

/// Actions that the server takes without a request.
extension HTTP3TestPeer {
  func respond(
    _ stream: Int64 = 0,
    _ status: Int = 200,
    _ headers: [(String, String)] = [],
    body: String = "",
    trailers: [(String, String)] = [],
    isOpen: Bool = false
  ) {
    XCTAssertEqual(quic_peer_respond(self.server, stream, "\(status)", Self.fields(headers), 0), 0)
    self.send(stream, Array(body.utf8))
    if !isOpen { self.finish(stream, trailers) }
  }

  func inform(_ stream: Int64, _ status: Int) {
    XCTAssertEqual(quic_peer_inform(self.server, stream, "\(status)"), 0)
  }

  func send(_ stream: Int64, _ bytes: [UInt8]) {
    quic_peer_send(self.server, stream, bytes, bytes.count)
  }

  func finish(_ stream: Int64, _ trailers: [(String, String)] = []) {
    quic_peer_finish(self.server, stream, Self.fields(trailers))
  }

  func reset(_ stream: Int64, _ code: UInt64) {
    XCTAssertEqual(quic_peer_reset(self.server, stream, code), 0)
  }

  func stop(_ stream: Int64, _ code: UInt64) {
    XCTAssertEqual(quic_peer_stop(self.server, stream, code), 0)
  }

  func extend(_ stream: Int64, _ count: UInt64) { quic_peer_extend(self.server, stream, count) }
  func extendStreams(_ count: UInt64) { quic_peer_extend_streams(self.server, count) }
  func noticeShutdown() { XCTAssertEqual(quic_peer_notice(self.server), 0) }
  func goAway() { XCTAssertEqual(quic_peer_go_away(self.server), 0) }
  func updateKey() { XCTAssertEqual(quic_peer_update_key(self.server, self.now), 0) }

  func openRaw() -> Int64 { quic_peer_open_raw(self.server) }

  func writeRaw(_ stream: Int64, _ bytes: [UInt8], isEnd: Bool = false) {
    XCTAssertEqual(quic_peer_write_raw(self.server, stream, bytes, bytes.count, isEnd ? 1 : 0), 0)
  }

  func statelessReset() -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 200)
    let count = quic_peer_stateless_reset(self.server, &buffer, buffer.count)
    return Array(buffer[..<count])
  }

  private static func fields(_ fields: [(String, String)]) -> [CChar] {
    var text: [CChar] = []
    for (name, value) in fields {
      text += name.utf8CString + value.utf8CString
    }
    return text + [0, 0]
  }

  /// Closes from the server's side.
  func close(_ code: UInt64, reason: String = "", isApplication: Bool = true) {
    var buffer = [UInt8](repeating: 0, count: 1452)
    let count = quic_peer_close(
      self.server,
      &buffer,
      buffer.count,
      isApplication ? 1 : 0,
      code,
      reason,
      self.now
    )
    XCTAssertGreaterThan(count, 0)
    self.deliverToClient(Array(buffer[..<count]))
  }
}
