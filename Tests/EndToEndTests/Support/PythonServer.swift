internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import Synchronization
internal import TestSupport

/// A Python server of `Tests/EndToEndTests/Servers` in a separate process.
///
/// The process ends when its standard input is closed: by ``stop()``, or because this process has ended.
final class PythonServer: Sendable {
  enum Script: String, Sendable {
    /// The test service by connectrpc on hypercorn. Ports `http` and `https`; texts `unix` (a path) and
    /// `authority` (a PEM).
    case connect = "connect_server.py"
    /// HTTP/2 that breaks rules. Ports `normal`, `one_stream` and `closed_window`; the script describes the paths.
    case misbehaving = "h2_misbehaving.py"
    /// The test service by grpcio. Ports `plain`, `tls` and `mutual` (which requires a client certificate); texts
    /// `unix` (a path), `authority`, `client_chain` and `client_key` (PEM).
    case grpc = "grpc_server.py"
    /// Any number of grpcio servers, started by commands; the script describes the commands.
    case fleet = "fleet_server.py"
    /// A grpcio server that calls the next one in a chain. Port `port`; the script describes arguments and commands.
    case chain = "chain_server.py"
    /// Envoy, which translates gRPC-Web and Connect for a grpcio server behind it. Ports `http` and `grpc`. If the
    /// arguments are addresses of servers: Envoy in front of these servers. Port `http`.
    case envoy = "envoy_proxy.py"
    /// A web server that supports neither RPC nor HTTP/2. Port `http`.
    case web = "plain_http_server.py"
    /// A name server by dnslib. Port `dns`, for UDP and TCP; the script describes the records and commands.
    case names = "dns_server.py"
    /// The test service by grpcio, with server reflection. Ports `v1alpha`, `v1`, `both`, `off` and `lacking`.
    case reflection = "reflection_server.py"
    /// nginx in front of the gRPC server whose address is the argument. Port `http` (h2c).
    case nginx = "nginx_proxy.py"
    /// The service of the examples by connectrpc on hypercorn. Port `http`.
    case eliza = "eliza_server.py"
    /// Checks the signatures of requests. Ports `http` and `grpc`; the script describes the answers.
    case signed = "signed_server.py"
    /// Control planes of xDS; the script describes the commands.
    case controlPlane = "../../ConnectXDSTests/Servers/control_plane.py"
    /// A third-party proxy, for ``ForwardProxy``.
    case forwardProxy = "forward_proxy.py"
  }

  fileprivate struct Announcement: Sendable {
    var ports: [String: Int] = [:]
    var texts: [String: String] = [:]
  }

  private static let running = SharedServers()

  private let process: Process
  private let input: Pipe
  private let output: OutputLines
  private let announcement: Announcement
  private let commandCount = Counter()

  private init(process: Process, input: Pipe, output: OutputLines, announcement: Announcement) {
    self.process = process
    self.input = input
    self.output = output
    self.announcement = announcement
  }

  /// The server that all tests of this process share; it starts at the first call.
  static func shared(_ script: Script) async throws -> PythonServer {
    try await self.running.server(script)
  }

  /// Starts a server and waits until it is ready.
  ///
  /// - Parameters:
  ///   - port: The first port of the server, by default a free one. ``Script/connect`` only.
  ///   - arguments: The arguments of the script.
  ///   - launcher: A command that executes the rest of its arguments, such as `ip netns exec`.
  /// - Throws: ``LoopbackServerError`` if the Python packages are not installed, if the server ends, or if it
  ///   is not ready within `timeout`.
  static func start(
    _ script: Script,
    port: Int? = nil,
    arguments: [String] = [],
    launcher: [String] = [],
    timeout: Duration = .seconds(60)
  ) async throws -> PythonServer {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let python = root.appending(path: ".venv/bin/python")
    guard FileManager.default.fileExists(atPath: root.appending(path: ".venv/installed").path()) else {
      throw LoopbackServerError("the Python servers are not installed: run `make venv` in \(root.path())")
    }
    let file = root.appending(path: "Tests/EndToEndTests/Servers/\(script.rawValue)")
    let words = launcher + [python.path(), "-B", file.path()] + arguments + (port.map { ["\($0)"] } ?? [])
    let (process, (input, output)) = try Process.start { process in
      process.executableURL = URL(filePath: words[0])
      process.arguments = Array(words.dropFirst())
      process.environment = ProcessInfo.processInfo.environment.merging([
        "CONNECT_TEST_GENERATED": root.appending(path: ".venv/generated").path()
      ]) { $1 }
      let (input, output) = (Pipe(), Pipe())
      process.standardInput = input
      process.standardOutput = output
      return (input, output)
    }
    do {
      let lines = OutputLines(of: output.fileHandleForReading)
      let announcement = try Announcement(json: try await lines.first(timeout: timeout))
      return PythonServer(process: process, input: input, output: lines, announcement: announcement)
    } catch {
      Glibc.kill(process.processIdentifier, SIGKILL)
      throw LoopbackServerError("\(script.rawValue) did not start: \(error)")
    }
  }

  /// A port on 127.0.0.1.
  func port(_ name: String) throws -> Int {
    guard let port = self.announcement.ports[name] else { throw LoopbackServerError("no port \(name)") }
    return port
  }

  /// Another fact that the server announced.
  func text(_ name: String) throws -> String {
    guard let text = self.announcement.texts[name] else { throw LoopbackServerError("no text \(name)") }
    return text
  }

  /// Sends a command to the script, and waits for the answer.
  ///
  /// - Throws: ``LoopbackServerError`` if the answer is an error, or if there is no answer.
  @discardableResult
  func command(_ command: [String: any Sendable]) async throws -> ServerAnswer {
    let number = self.commandCount.increment()
    var line = try JSONSerialization.data(withJSONObject: command.merging(["number": number]) { $1 })
    line.append(UInt8(ascii: "\n"))
    try self.input.fileHandleForWriting.write(contentsOf: line)
    let answer = try await self.output.answer(to: number)
    if let error = answer.error { throw LoopbackServerError("\(command): \(error)") }
    return answer
  }

  /// Ends the process and waits for its end.
  func stop() async {
    try? self.input.fileHandleForWriting.close()
    for _ in 0..<200 where self.process.isRunning {
      try? await Task.sleep(for: .milliseconds(10))
    }
    if self.process.isRunning { Glibc.kill(self.process.processIdentifier, SIGKILL) }
    self.process.waitUntilExit()
  }

  /// Ends the process as a crash would, and waits for its end.
  func kill() {
    Glibc.kill(self.process.processIdentifier, SIGKILL)
    self.process.waitUntilExit()
    // A killed process cannot remove its socket.
    if let socket = self.announcement.texts["unix"] {
      try? FileManager.default.removeItem(at: URL(filePath: socket).deletingLastPathComponent())
    }
  }

  var isRunning: Bool { self.process.isRunning }

  /// Stops the process as if its machine hung, until ``resume()``. Its sockets stay open.
  func freeze() { Glibc.kill(self.process.processIdentifier, SIGSTOP) }

  func resume() { Glibc.kill(self.process.processIdentifier, SIGCONT) }
}

/// A script's answer to a command; the script describes which fields it sets.
struct ServerAnswer: Decodable, Sendable {
  fileprivate let number: Int
  let error: String?
  let address: String?
  let started: Int?
  let ended: Int?
  let held: [Int]?
  let peers: Int?
  let queries: Int?
}

extension PythonServer.Announcement {
  fileprivate init(json line: String) throws {
    guard let facts = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
      throw LoopbackServerError("not a JSON object: \(line)")
    }
    self.init(ports: facts.compactMapValues { $0 as? Int }, texts: facts.compactMapValues { $0 as? String })
  }
}

/// Starts each server at most once.
private actor SharedServers {
  private var servers: [PythonServer.Script: Task<PythonServer, any Error>] = [:]

  func server(_ script: PythonServer.Script) async throws -> PythonServer {
    let server = self.servers[script] ?? Task { try await PythonServer.start(script) }
    self.servers[script] = server
    return try await server.value
  }
}

/// The output of a process: a line when it is ready, then answers to commands.
private final class OutputLines: Sendable {
  fileprivate struct State {
    var bytes = Data()
    var first: String?
    var answers: [Int: ServerAnswer] = [:]
    var isEnded = false
  }

  private let state = Mutex(State())

  init(of handle: FileHandle) {
    handle.readOnThread { data in self.state.withLock { $0.add(data) } }
  }

  /// - Throws: If the process ends first, or if the timeout passes.
  func first(timeout: Duration) async throws -> String {
    try await self.value("the server is ready", within: timeout) { $0.first }
  }

  func answer(to number: Int) async throws -> ServerAnswer {
    try await self.value("there is an answer", within: patience) { $0.answers.removeValue(forKey: number) }
  }

  private func value<Value>(
    _ what: String,
    within limit: Duration,
    _ take: (inout State) -> Value?
  ) async throws -> Value {
    var value: Value?
    try await eventually(what, within: limit) {
      try self.state.withLock { state in
        value = take(&state)
        if value == nil, state.isEnded { throw LoopbackServerError("it ended before \(what)") }
      }
      return value != nil
    }
    guard let value else { throw LoopbackServerError("no value") }
    return value
  }
}

extension OutputLines.State {
  fileprivate mutating func add(_ data: Data) {
    if data.isEmpty { self.isEnded = true }
    self.bytes.append(data)
    while let end = self.bytes.firstIndex(of: UInt8(ascii: "\n")) {
      let line = self.bytes[..<end]
      self.bytes = Data(self.bytes[(end + 1)...])
      if self.first == nil {
        self.first = String(decoding: line, as: UTF8.self)
      } else if let answer = try? JSONDecoder().decode(ServerAnswer.self, from: Data(line)) {
        self.answers[answer.number] = answer
      }
    }
  }
}
