public import ArgumentParser

/// What a client under test does, as all of them take it on their command lines.
public struct Workload: ParsableArguments, Sendable {
  public enum Kind: String, ExpressibleByArgument, CaseIterable, Sendable {
    case unary
    case serverStream = "server-stream"
    case clientStream = "client-stream"
    /// Each message waits for the answer to the one before.
    case bidi
    /// Opens streams and leaves them open.
    case idle
  }

  @Option(help: "The server's port on 127.0.0.1.")
  public var port: Int

  @Option(help: "What to do.")
  public var kind: Kind = .unary

  @Option(help: "Bytes of data in a request's message.")
  public var size = 20

  @Option(help: "Calls, or streams, under way at the same time.")
  public var inFlight = 32

  @Option(help: "Messages in one stream.")
  public var messages = 10_000

  @Flag(help: "Asks the server for a DATA frame for each message of a server stream.")
  public var framedEach = false

  @Option(help: "How long to measure, in seconds.")
  public var seconds = 2.0

  @Option(help: "How long to run before, in seconds.")
  public var warmup = 0.5

  @Option(help: "Instead of measuring for a time: how many calls to make, warm-up included. For callgrind.")
  public var calls: Int?

  public init() {}
}
