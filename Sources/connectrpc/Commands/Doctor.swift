import ArgumentParser

struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Says what works between here and a server, and what does not.",
    discussion: """
      Looks at the name, TCP, TLS, the versions of HTTP, the protocols, the health service and reflection. The exit code is 0 if \
      calls can be made, else 78.

        connectrpc doctor https://demo.example
      """
  )

  @Argument(help: ArgumentHelp("The server: https://host:port.", valueName: "url"))
  var url: String

  @OptionGroup(title: "Server") var server: ServerOptions

  func run() async throws {
    try await Failure.reported {
      let host = try ServiceAddress(service: self.url).host
      var isBroken = false
      func say(_ findings: [Finding]) {
        for finding in findings {
          isBroken = isBroken || finding.verdict == .broken
          Console.output(finding.lines)
        }
      }
      if !host.hasPrefix("unix:"), self.server.proxy == nil {
        let name = ServerName(host: host)
        let check = TransportCheck(
          name: name.name,
          port: name.port,
          isSecure: host.hasPrefix("https:"),
          server: self.server
        )
        let (findings, isReachable) = await check.run()
        say(findings)
        guard isReachable else { throw ExitCode(78) }
        // Another address may work.
        isBroken = false
      }
      say(await CallCheck(host: host, server: self.server).run())
      if isBroken { throw ExitCode(78) }
    }
  }
}
