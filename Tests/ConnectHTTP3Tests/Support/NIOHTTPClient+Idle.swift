internal import ConnectChannels
internal import ConnectNIO
internal import XCTest

extension NIOHTTPClient {
  /// Waits until the only channel, or its cluster, has no connection; fails after ten seconds.
  ///
  /// After `/script/end` of the server, whose connection ends when no call is under way. If one ends under a call, the client
  /// opens the next one at once, which may be there before the next call. Early data is then too late.
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
