internal import ConnectChannels
internal import Glibc
internal import LoopbackServer

/// A third-party proxy on a port of 127.0.0.1, in a separate process.
struct ForwardProxy {
  /// The proxy program, and the credentials it requires.
  struct Setting: Sendable, CustomStringConvertible {
    enum Program: String, CaseIterable {
      /// An HTTP proxy (Debian: `tinyproxy-bin`).
      case tinyproxy
      /// A SOCKS5 proxy (Debian: `microsocks`).
      case microsocks
    }

    var program: Program
    var credentials: Proxy.Credentials?
    /// Additional lines of tinyproxy's configuration.
    var lines = ""

    static let login = Proxy.Credentials(user: "us-er", password: "secret.1")
    static let all = Program.allCases.flatMap { program in
      [Setting(program: program), Setting(program: program, credentials: Self.login)]
    }

    var description: String { "\(self.program.rawValue)\(self.credentials == nil ? "" : " with a password")" }
  }

  let setting: Setting
  let port: Int
  private let processID: pid_t
  private let server: PythonServer

  /// Starts a proxy and waits until it accepts connections.
  ///
  /// - Parameter port: By default a free one.
  static func start(_ setting: Setting, port: Int = 0) async throws -> ForwardProxy {
    let server = try await PythonServer.start(
      .forwardProxy,
      arguments: [
        setting.program.rawValue, "\(port)", setting.credentials?.user ?? "",
        setting.credentials?.password ?? "",
        setting.lines,
      ]
    )
    guard let processID = pid_t(try server.text("pid")) else { throw LoopbackServerError("no process ID") }
    return ForwardProxy(
      setting: setting,
      port: try server.port("proxy"),
      processID: processID,
      server: server
    )
  }

  /// Runs `body` with a proxy, and stops the proxy.
  @discardableResult
  static func with<Result>(
    _ setting: Setting,
    _ body: (ForwardProxy) async throws -> Result
  ) async throws -> Result {
    let proxy = try await Self.start(setting)
    do {
      let result = try await body(proxy)
      await proxy.kill()
      return result
    } catch {
      await proxy.kill()
      throw error
    }
  }

  /// The proxy in the client's configuration, with these credentials.
  func address(_ credentials: Proxy.Credentials?) -> Proxy {
    switch self.setting.program {
    case .tinyproxy: .httpConnect(host: "127.0.0.1", port: self.port, credentials: credentials)
    case .microsocks: .socks5(host: "127.0.0.1", port: self.port, credentials: credentials)
    }
  }

  /// The proxy with the credentials that it accepts.
  var address: Proxy { self.address(self.setting.credentials) }

  /// Stops the process, while the system still accepts connections for the proxy.
  func freeze() {
    Glibc.kill(self.processID, SIGSTOP)
  }

  /// Ends the process as a crash would, and waits for its end.
  func kill() async {
    await self.server.stop()
  }
}
