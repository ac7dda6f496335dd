internal import NIOCore
internal import NIOHTTP2

extension LoopbackServer {
  /// Goes away in order: accepts no more connections, and tells the clients of HTTP/2 ones to start no more streams there
  /// (GOAWAY). What is under way is finished.
  ///
  /// Returns once all connections are closed, or after `limit`, when the rest is closed.
  public func drain(within limit: Duration = .seconds(10)) async {
    await self.stopListening()
    for connection in self.openConnections {
      guard (try? await connection.pipeline.containsHandler(type: NIOHTTP2Handler.self).get()) != nil else {
        continue
      }
      let goAway = HTTP2Frame.FramePayload.goAway(lastStreamID: .maxID, errorCode: .noError, opaqueData: nil)
      try? await connection.writeAndFlush(HTTP2Frame(streamID: .rootStream, payload: goAway))
    }
    let deadline = ContinuousClock.now + limit
    while !self.openConnections.isEmpty, ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(2))
    }
    await self.stop()
  }
}
