import ArgumentParser

/// Where a server of this program listens, and until when.
struct ListenOptions: ParsableArguments {
  @Option(help: "Where to listen; port 0 is a free one. It is printed on standard error.")
  var listen = ListenAddress(host: "127.0.0.1", port: 0)

  @Option(
    help: ArgumentHelp(
      "End after so many calls; else at SIGINT or SIGTERM. Scripts start background jobs with SIGINT ignored: use SIGTERM for them.",
      valueName: "calls"
    )
  )
  var count: Int?

  func validate() throws {
    if let count = self.count, count < 1 { throw ValidationError("--count is at least 1") }
  }
}
