internal import NIOCore
internal import NIOHTTP2

extension LoopbackServer {
  /// Shuts down gracefully: accepts no more connections, and sends GOAWAY on HTTP/2 connections, so that clients start
  /// no more streams there. Requests in flight are completed.
  ///
  /// Returns once all connections are closed, or after `limit`, when the remaining connections are closed.
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
