import ArgumentParser
import Foundation

struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Says what works between here and a server, and what does not.",
    discussion: """
      Looks at the name, TCP, TLS and its certificates, the versions of HTTP, the protocols and the trailers of gRPC, the health \
      service, reflection, and compression. The exit code is 0 if calls can be made, 78 if not, 1 if that could not be told, and \
      64 if the options cannot be used.

      With a method, this is called in place of the health service, several times, with an empty message: give one that changes \
      nothing.

        connectrpc doctor https://demo.example
        connectrpc doctor https://demo.example/acme.v1.Users/Get --protocol grpc

      With --xds, it looks at the bootstrap, at each control plane and at the resources of the target in place of the name, TCP \
      and TLS.

        connectrpc doctor http://orders/acme.v1.Orders/Get --protocol grpc --xds xds:///orders
      """
  )

  @Argument(
    help: ArgumentHelp(
      "The server: https://host:port; or a method of it, for servers without a health service.",
      valueName: "url"
    )
  )
  var url: String

  @OptionGroup(title: "Server") var server: ServerOptions

  func run() async throws {
    try await Failure.reported {
      let address = try ServiceAddress(serviceOrMethod: self.url)
      let host = address.host
      // The doctor says more of mistakes in the bootstrap.
      if self.server.xdsTarget == nil { try self.server.check(for: host) }
      var isBroken = false
      func say(_ findings: [Finding]) {
        for finding in findings {
          isBroken = isBroken || finding.isFatal
          Console.output(finding.lines)
        }
      }
      let calls = CallCheck(host: host, method: address.path, server: self.server)
      let name = ServerName(host: host)
      if let target = self.server.xdsTarget?.withoutBlanks {
        let findings = await XDSCheck(target: target, environment: ProcessInfo.processInfo.environment).run()
        say(findings)
        if isBroken { throw ExitCode(78) }
      } else if host.socketScheme != nil {
        // Nothing is below HTTP but the socket.
      } else if try self.server.usesProxy(to: name) {
        say([Finding("proxy", .works, "connections go through it")])
      } else {
        let check = TransportCheck(
          name: name.name,
          port: name.port,
          isSecure: host.hasPrefix("https:"),
          server: self.server
        )
        let (findings, isReachable) = await check.run()
        say(findings)
        // There are servers with QUIC alone.
        guard isReachable || self.server.httpVersion == .http3 else { throw ExitCode(78) }
        // Another address may work.
        isBroken = false
      }
      let findings = try await calls.run()
      say(findings)
      if isBroken { throw ExitCode(78) }
      if findings.contains(where: { $0.subject == CallCheck.unknownSubject }) { throw ExitCode(1) }
    }
  }
}
