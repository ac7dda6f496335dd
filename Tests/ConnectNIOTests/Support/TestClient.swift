import Connect
import ConnectChannels
import ConnectNIO
import Foundation
import NIOCore
import NIOPosix
import XCTest

/// A client on one event loop of the shared group, with an endpoint to one origin.
struct TestClient: Sendable {
  let client: NIOHTTPClient
  let eventLoop: any EventLoop
  let endpoint: any HTTPEndpoint

  init(
    _ origin: Origin,
    _ configuration: NIOHTTPClient.Configuration = .defaults,
    requiresHTTP2: Bool = false
  ) throws {
    self.eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    self.client = NIOHTTPClient(configuration: configuration, eventLoopGroup: self.eventLoop)
    self.endpoint = try self.client.endpoint(for: origin, on: nil, requiresHTTP2: requiresHTTP2)
  }

  init(_ server: RawServer, _ configuration: NIOHTTPClient.Configuration = .defaults) throws {
    try self.init(Origin(scheme: .http, host: "127.0.0.1", port: server.port), configuration)
  }

  func call(consumesAtOnce: Bool = true) -> TestCall {
    TestCall(self.endpoint, on: self.eventLoop, consumesAtOnce: consumesAtOnce)
  }

  func shutdown() async {
    await self.client.shutdown(within: .seconds(5))
  }
}

extension ChannelConfiguration.Backoff {
  /// A short backoff, for tests of clients that recover.
  static var quick: Self { Self(initial: .milliseconds(5), maximum: .milliseconds(20)) }
}

/// Waits until `condition` holds; fails after ten seconds. For events on the other side of a socket.
func eventually(
  _ what: String,
  file: StaticString = #filePath,
  line: UInt = #line,
  _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + .seconds(10)
  while try await !condition() {
    guard ContinuousClock.now < deadline else {
      XCTFail("not within ten seconds: \(what)", file: file, line: line)
      return
    }
    try await Task.sleep(for: .milliseconds(5))
  }
}

/// A folder that is removed at the end.
func withTemporaryFolder<R>(_ body: (String) async throws -> R) async throws -> R {
  let path = "/tmp/connect-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0 ... .max))"
  try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try await body(path)
}
