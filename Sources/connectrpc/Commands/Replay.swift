import ArgumentParser
import Connect
import ConnectNIO
import ConnectTesting
import NIOCore
import NIOPosix
import Synchronization

struct Replay: AsyncParsableCommand {
  enum Timing: String, ExpressibleByArgument, CaseIterable {
    case none, recorded
  }

  static let configuration = CommandConfiguration(
    abstract: "Answers calls from a cassette, as a server.",
    discussion: """
      Listens for HTTP/1.1 and HTTP/2 without TLS. Each recorded call answers one call of the same method, protocol and messages, \
      in the order of the recording. A call that is not there gets an error that says what was asked, and what comes next. \
      Types are needed for messages in JSON; a cassette of connectrpc has its types itself.

        connectrpc replay users.json --listen 127.0.0.1:8080
        connectrpc replay users.json --listen 127.0.0.1:8080 --count 3 --all --timing recorded
      """
  )

  @Argument(help: "The cassette.")
  var file: String

  @OptionGroup var listening: ListenOptions

  @Option(help: "When the parts of responses come: at once, or after the time that they took.")
  var timing = Timing.none

  @Flag(
    name: .customLong("all"),
    help:
      "Fail at the end unless every recorded call was asked, and no other. Recorded calls of server reflection need not be asked."
  )
  var requiresAll = false

  @OptionGroup(title: "Redaction") var redaction: RedactionOptions
  @OptionGroup(title: "Schema") var schema: SchemaOptions

  func run() async throws {
    try await Failure.reported {
      let cassette = try await CassetteFile(path: self.file).read(self.schema, self.redaction).cassette
      let end = ProxyEnd(count: self.listening.count)
      let misses = Misses()
      let loop = MultiThreadedEventLoopGroup.singleton.any()
      let target = ProxyTarget(start: try self.player(cassette, EventLoopExecutor(loop))) {
        misses.show(of: cassette)
        end.callDidEnd()
      }
      let server = try await ProxyServer.start(at: self.listening.listen, on: loop, target)
      Console.error("listening on \(server.url), with \(CassetteFile.calls(cassette.count))")
      await end.wait()
      await server.stop()
      misses.show(of: cassette)
      try self.report(cassette)
    }
  }

  private func player(_ cassette: Cassette, _ executor: EventLoopExecutor) throws -> ProxyTarget.Start {
    let transport = try CassetteTransport(
      cassette,
      executor: executor,
      timing: self.timing == .recorded ? .recorded : .atOnce
    )
    // A cassette answers whatever the origin is.
    let origin = Origin(scheme: .http, host: "cassette", port: 80)
    let endpoint = try transport.endpoint(for: origin, on: executor, requiresHTTP2: false)
    return { (request, _, handler) throws(ConnectError) in endpoint.startStream(request, handler: handler) }
  }

  private func report(_ cassette: Cassette) throws {
    let unused = cassette.unusedCalls
    let missing = cassette.missingCalls
    let count = cassette.count - cassette.reflectionCount
    let reflection = cassette.reflectionCount
    Console.error(
      "replayed \(count - unused.count) of \(CassetteFile.calls(count))"
        + (reflection > 0 ? ", besides \(CassetteFile.calls(reflection)) of server reflection" : "")
    )
    for call in unused { Console.error("  not asked: \(Console.line(call))") }
    guard self.requiresAll, !unused.isEmpty || !missing.isEmpty else { return }
    throw Failure(
      message: "\(unused.count) recorded calls were not asked, \(missing.count) were asked and not recorded",
      exitCode: 1
    )
  }
}

/// Prints each missing call once.
private final class Misses: Sendable {
  private let shown = Mutex(0)

  func show(of cassette: Cassette) {
    let calls = cassette.missingCalls
    let new = self.shown.withLock { shown in
      defer { shown = calls.count }
      return calls.dropFirst(shown)
    }
    for call in new {
      // The first line says which, the others compare.
      for (number, line) in Console.lines(call).enumerated() {
        Console.error(number == 0 ? line : "  \(line)")
      }
    }
  }
}
