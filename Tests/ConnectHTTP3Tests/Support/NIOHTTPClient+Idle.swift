internal import ConnectChannels
internal import ConnectNIO
internal import XCTest

extension NIOHTTPClient {
  /// Waits until the only channel, or this cluster of it, has no connection; fails after ten seconds.
  ///
  /// For tests of early data, after a call that the server answers before it ends the connection. If a connection ends during
  /// a call, the client opens the next one at once. When that is ready before the next call, the call has no early data.
  func waitUntilIdle(
    _ cluster: String? = nil,
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws {
    let deadline = ContinuousClock.now + .seconds(10)
    while true {
      let channels = await self.snapshots()
      let channel = try XCTUnwrap(channels.first, file: file, line: line)
      let part = cluster.map { name in channel.clusters.first { $0.name == name }?.snapshot } ?? channel
      if part?.state == .idle { return }
      guard ContinuousClock.now < deadline else {
        XCTFail("not idle within ten seconds: \(channel)", file: file, line: line)
        return
      }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
