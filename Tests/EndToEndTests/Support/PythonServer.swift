internal import Foundation
internal import Glibc
internal import LoopbackServer
internal import Synchronization

/// A Python server of `Tests/EndToEndTests/Servers` in a process of its own.
///
/// The process ends when its standard input is closed: by ``stop()``, or because this process has ended.
final class PythonServer: Sendable {
  enum Script: String, Sendable {
    /// The test service by connectrpc on hypercorn. Ports `http` and `https`; texts `unix` (a path) and
    /// `authority` (a PEM).
    case connect = "connect_server.py"
    /// HTTP/2 that breaks rules. Ports `normal`, `one_stream` and `closed_window`; its file has the paths.
    case misbehaving = "h2_misbehaving.py"
    /// The test service by grpcio. Ports `plain`, `tls` and `mutual` (which requires a client certificate); texts
    /// `unix` (a path), `authority`, `client_chain` and `client_key` (PEM).
    case grpc = "grpc_server.py"
    /// Envoy, which translates gRPC-Web and Connect for a server of grpcio behind it. Ports `http` and `grpc`.
    case envoy = "envoy_proxy.py"
    /// A web server that knows nothing of RPC and HTTP/2. Port `http`.
    case web = "plain_http_server.py"
    /// A name server by dnslib. Port `dns`, for UDP and TCP; its file has the records.
    case names = "dns_server.py"
    /// Somebody else's proxy, for ``ForwardProxy``.
    case forwardProxy = "forward_proxy.py"
  }

  fileprivate struct Announcement: Sendable {
    var ports: [String: Int] = [:]
    var texts: [String: String] = [:]
  }

  private static let running = SharedServers()

  private let process: Process
  private let input: Pipe
  private let announcement: Announcement

  private init(process: Process, input: Pipe, announcement: Announcement) {
    self.process = process
    self.input = input
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
  ///   - arguments: Of the script.
  /// - Throws: ``LoopbackServerError`` if the Python packages are not installed, if the server ends, or if it
  ///   is not ready within `timeout`.
  static func start(
    _ script: Script,
    port: Int? = nil,
    arguments: [String] = [],
    timeout: Duration = .seconds(60)
  ) async throws -> PythonServer {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let python = root.appending(path: ".venv/bin/python")
    guard FileManager.default.fileExists(atPath: root.appending(path: ".venv/installed").path()) else {
      throw LoopbackServerError("the Python servers are not installed: run `make venv` in \(root.path())")
    }
    let process = Process()
    process.executableURL = python
    process.arguments =
      ["-B", root.appending(path: "Tests/EndToEndTests/Servers/\(script.rawValue)").path()] + arguments
    if let port { process.arguments?.append("\(port)") }
    process.environment = ProcessInfo.processInfo.environment.merging([
      "CONNECT_TEST_GENERATED": root.appending(path: ".venv/generated").path()
    ]) { $1 }
    let (input, output) = (Pipe(), Pipe())
    // Else another child process could keep this one's input open.
    for handle in [input.fileHandleForWriting, output.fileHandleForReading] {
      _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC)
    }
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    do {
      let line = try await FirstLine(of: output.fileHandleForReading).value(timeout: timeout)
      let announcement = try Announcement(json: line)
      return PythonServer(process: process, input: input, announcement: announcement)
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
    // It could not do that itself.
    if let socket = self.announcement.texts["unix"] {
      try? FileManager.default.removeItem(at: URL(filePath: socket).deletingLastPathComponent())
    }
  }

  var isRunning: Bool { self.process.isRunning }
}

extension PythonServer.Announcement {
  fileprivate init(json line: String) throws {
    guard let facts = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
      throw LoopbackServerError("not a JSON object: \(line)")
    }
    self.init(ports: facts.compactMapValues { $0 as? Int }, texts: facts.compactMapValues { $0 as? String })
  }
}

/// Starts each server once.
private actor SharedServers {
  private var servers: [PythonServer.Script: Task<PythonServer, any Error>] = [:]

  func server(_ script: PythonServer.Script) async throws -> PythonServer {
    let server = self.servers[script] ?? Task { try await PythonServer.start(script) }
    self.servers[script] = server
    return try await server.value
  }
}

/// The first line that a process writes.
private final class FirstLine: Sendable {
  private struct State {
    var bytes = Data()
    var result: Result<String, any Error>?
    var waiter: CheckedContinuation<String, any Error>?
  }

  private let state = Mutex(State())
  private let handle: FileHandle

  init(of handle: FileHandle) {
    self.handle = handle
    handle.readabilityHandler = { handle in
      let data = handle.availableData
      if data.isEmpty {
        self.finish(.failure(LoopbackServerError("it ended without being ready")))
      } else if let line = self.line(after: data) {
        self.finish(.success(line))
      }
    }
  }

  /// - Throws: If the process ends first, or the time is over.
  func value(timeout: Duration) async throws -> String {
    let timer = Task {
      try await Task.sleep(for: timeout)
      self.finish(.failure(LoopbackServerError("it was not ready within \(timeout)")))
    }
    defer { timer.cancel() }
    return try await withCheckedThrowingContinuation { continuation in
      let result = self.state.withLock { state in
        if state.result == nil { state.waiter = continuation }
        return state.result
      }
      if let result { continuation.resume(with: result) }
    }
  }

  private func line(after data: Data) -> String? {
    self.state.withLock { state in
      state.bytes.append(data)
      guard let end = state.bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      return String(decoding: state.bytes[..<end], as: UTF8.self)
    }
  }

  private func finish(_ result: Result<String, any Error>) {
    self.handle.readabilityHandler = nil
    let waiter = self.state.withLock { state in
      guard state.result == nil else { return CheckedContinuation<String, any Error>?.none }
      state.result = result
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(with: result)
  }
}
