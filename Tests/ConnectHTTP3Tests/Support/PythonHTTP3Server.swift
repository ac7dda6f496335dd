internal import Connect
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import TestSupport

/// `Servers/h3_server.py` in a separate process, which ends when this process ends.
final class PythonHTTP3Server: Sendable {
  /// One of the script's servers.
  enum Kind: String, CaseIterable {
    case aioquic
    /// The same, but it asks for a token first (Retry).
    case retry
    /// The same, but it forgets a connection after a second of silence.
    case brief
    case hypercorn
  }

  private static let running = Starter()

  private struct Announcement: Decodable {
    var h3: Int
    var retry: Int
    var brief: Int
    var hypercorn: Int
    var authority: String
  }

  private let process: ChildProcess
  private let announcement: Announcement

  /// The server that all tests share; it starts at the first call.
  static func shared() async throws -> PythonHTTP3Server {
    try await self.running.server()
  }

  init() async throws {
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    let root = here.appending(path: "../../..").standardized
    guard FileManager.default.fileExists(atPath: root.appending(path: ".venv/installed").path()) else {
      throw LoopbackServerError("the Python servers are not installed: run `make venv` in \(root.path())")
    }
    self.process = try ChildProcess(
      root.appending(path: ".venv/bin/python"),
      arguments: ["-B", here.appending(path: "../Servers/h3_server.py").standardized.path()],
      environment: [
        "CONNECT_TEST_GENERATED": root.appending(path: ".venv/generated").path(),
        "CONNECT_TEST_LAUNCHER": root.appending(path: "Tests/EndToEndTests/Servers").path(),
      ]
    )
    var line = Data()
    while let byte = try await self.process.read(1).first, byte != UInt8(ascii: "\n") { line.append(byte) }
    guard let facts = try? JSONDecoder().decode(Announcement.self, from: line) else {
      throw LoopbackServerError("the HTTP/3 server did not start: \(self.process.errorOutput)")
    }
    self.announcement = facts
  }

  var authority: [UInt8] { Array(self.announcement.authority.utf8) }

  /// The server's error output.
  var complaints: String { self.process.errorOutput }

  func port(_ kind: Kind) -> Int {
    switch kind {
    case .aioquic: self.announcement.h3
    case .retry: self.announcement.retry
    case .brief: self.announcement.brief
    case .hypercorn: self.announcement.hypercorn
    }
  }

  /// Stops the process: it reads and answers nothing.
  func stopAnswering() { self.process.signal(SIGSTOP) }

  /// Ends the server as a crash would.
  func kill() { self.process.signal(SIGKILL) }

  func configuration(_ http3: HTTP3Support = .alone) -> NIOHTTPClient.Configuration {
    NIOHTTPClient.Configuration(tls: .init(trustRoots: .pemBytes(self.authority)), http3: http3)
  }

  private actor Starter {
    private var task: Task<PythonHTTP3Server, any Error>?

    func server() async throws -> PythonHTTP3Server {
      let task = self.task ?? Task { try await PythonHTTP3Server() }
      self.task = task
      return try await task.value
    }
  }
}

/// A server, a protocol and an encoding: the parameters of a test.
struct HTTP3Setting: CustomStringConvertible {
  var server: PythonHTTP3Server.Kind
  var networkProtocol: NetworkProtocol
  var codec: any Codec = ProtoCodec()

  /// hypercorn sends no HTTP/3 trailers, which gRPC needs.
  static let all: [HTTP3Setting] =
    [NetworkProtocol.connect, .grpc, .grpcWeb].flatMap { networkProtocol in
      [HTTP3Setting(server: .aioquic, networkProtocol: networkProtocol)]
        + (networkProtocol == .grpc
          ? [] : [HTTP3Setting(server: .hypercorn, networkProtocol: networkProtocol)])
    } + [
      HTTP3Setting(server: .aioquic, networkProtocol: .connect, codec: JSONCodec()),
      HTTP3Setting(server: .retry, networkProtocol: .connect),
    ]

  static let aioquic = Self.all.filter { $0.server == .aioquic }

  var description: String { "\(self.server.rawValue), \(self.networkProtocol), \(self.codec.name)" }

  /// Calls `body` with a client for this setting, and shuts the client down.
  @discardableResult
  func withClient<Result>(
    unaryGET: UnaryGET = .disabled,
    _ body: (ProtocolClient) async throws -> Result
  ) async throws -> Result {
    let server = try await PythonHTTP3Server.shared()
    let httpClient = NIOHTTPClient(configuration: server.configuration())
    let client = ProtocolClient(
      httpClient: httpClient,
      config: ProtocolClientConfig(
        host: "https://localhost:\(server.port(self.server))",
        networkProtocol: self.networkProtocol,
        codec: self.codec,
        timeout: .seconds(60),
        unaryGET: unaryGET
      )
    )
    do {
      let result = try await body(client)
      await httpClient.shutdown(within: .seconds(10))
      return result
    } catch {
      await httpClient.shutdown(within: .zero)
      throw error
    }
  }
}
