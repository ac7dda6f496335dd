import ArgumentParser
import Connect

/// The command line of Connect, gRPC and gRPC-Web.
@main
struct ConnectRPC: AsyncParsableCommand {
  static func main() async {
    Console.prepare()
    await self.main(nil)
  }

  static let configuration = CommandConfiguration(
    commandName: "connectrpc",
    abstract: "Looks at and calls services of Connect, gRPC and gRPC-Web.",
    discussion: """
      Exit codes: 0 for success; 64 for arguments, files and JSON that cannot be used; 64 + N for an RPC that failed with code N, \
      such as 69 for not_found (5) and 78 for unavailable (14); 1 for anything else.
      """,
    version: UserAgent.version,
    subcommands: [
      List.self, Describe.self, Call.self, Load.self, Record.self, Replay.self, Doctor.self,
      Whatif.self, Manual.self,
    ]
  )
}
