import ArgumentParser
import Connect
import ConnectTesting
import NIOCore

/// Why a command ended without success, in one line, and the exit code for scripts.
struct Failure: Error {
  var message: String
  var exitCode: Int32
  /// What is printed below it.
  var furtherLines: [String] = []
}

extension Failure {
  /// Arguments, files or JSON of the user cannot be used.
  static func usage(_ message: String) -> Failure { Failure(message: message, exitCode: 64) }

  /// - Parameters:
  ///   - details: The lines of the error's details; nil for their bytes.
  ///   - isReplayed: Whether a cassette has answered in place of the server.
  init(_ error: ConnectError, details: [String]?, isReplayed: Bool = false) {
    // Without a response, these codes mean that the client cannot do what was asked.
    let isUsage =
      error.httpStatus == nil
      && (error.code == .invalidArgument || error.code == .failedPrecondition && !isReplayed)
    var message = error.message.map { Self.advising($0) }
    if let text = message, text.hasPrefix(Self.missStart) {
      // What was asked, and what is recorded, can be compared only line by line.
      let lines = Console.lines(text)
      message = lines.first
      self.furtherLines = lines.dropFirst().map { "  \($0)" }
    }
    self.message = "\(error.code.name) (\(error.code.rawValue))" + (message.map { ": \($0)" } ?? "")
    self.exitCode = isUsage ? 64 : 64 + Int32(error.code.rawValue)
    let details = details ?? error.details.map { Self.line(ofUnknown: $0) }
    self.furtherLines += details.map { "\(Console.dim("detail:")) \($0)" }
  }

  /// A detail of an unknown type, with its bytes in base64.
  static func line(ofUnknown detail: ConnectError.Detail) -> String {
    let bytes = String(buffer: Base64.encode(detail.value, alphabet: .standard, isPadded: true))
    return Console.line("\(detail.type): {\"value\":\"\(bytes)\"} (a type that is not known)")
  }

  /// How a cassette's message begins that has no answer to a call.
  private static let missStart = "the cassette has no answer to "

  /// Translates the library's advice into options of the command line. Longer texts come first.
  private static let advice = [
    ("make the client with NIOHTTPClient(configuration: .init(version: .http2Only))", "give --http 2"),
    ("set networkProtocol to .connect or .grpcWeb", "give --protocol connect or grpc-web"),
    ("set networkProtocol to .connect", "give --protocol connect"),
    ("set networkProtocol to .grpcWebText", "use another client: this one does not speak its text form"),
    ("set networkProtocol to .grpcWeb", "give --protocol grpc-web"),
    ("set networkProtocol to .grpc", "give --protocol grpc"),
    ("check networkProtocol and codec", "check --protocol and --codec"),
    (
      "and leave the configuration's version at .automatic, or set it to .http1Only with a connected socket",
      "and no --http"
    ),
    ("networkProtocol .grpc, or version .http2Only", "--protocol grpc, or --http 2"),
    ("see NIOHTTPClient.Configuration.version", "give another --http"),
    ("begin the host with https://", "begin the URL with https://"),
    ("use a descriptor set or proto files", "give --schema or --proto"),
    (
      "add the method to the configuration's messages, and the compression to its compressions",
      "give --schema or --proto"
    ),
    ("bytes, its maximumSize", "bytes; see --max-size"),
    (" (maximumReceivedMessageSize)", ""),
    (" (maximumSentMessageSize)", ""),
    ("see NIOHTTPClient.Configuration.Limits.waitingCalls", "make fewer calls at a time"),
    (" (see ProtocolClientConfig.compression)", ""),
    ("which is over the configuration's maximumSize of", "which is over the limit of"),
    (", the cassette's maximumBodySize", ", which is the limit"),
    ("see ProtocolClientConfig.Retries.maximumReplayBytes", "make the call again"),
    ("see ProtocolClientConfig.Retries.maximumRetries", "make the call again"),
    (
      "wait until send completes, or raise ProtocolClientConfig.Limits.maximumQueuedMessages",
      "send them more slowly"
    ),
  ]

  static func advising(_ message: String) -> String {
    self.advice.reduce(message) { $0.replacing($1.0, with: $1.1) }
  }

  /// Runs local work on the user's input: its errors are errors of usage, not answers of a server.
  static func local<Value>(_ work: () throws -> Value) throws -> Value {
    do {
      return try work()
    } catch let error as ConnectError {
      throw Failure.usage(error.message ?? error.code.name)
    }
  }

  /// Works on what a server's reflection has sent: what is wrong with it is the server's fault.
  static func reflected<Value>(_ work: () throws -> Value) throws -> Value {
    do {
      return try work()
    } catch let error as ConnectError where error.code == .invalidArgument {
      let problem = error.message.map { ": \($0)" } ?? ""
      throw ConnectError(
        code: .internalError,
        message: "the server's reflection gave files that cannot be used\(problem)"
      )
    }
  }

  init(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as ConnectError: self.init(error, details: nil)
    case let error as CassetteError: self = .usage("\(error)")
    default: self.init(message: "\(error)", exitCode: 1)
    }
  }

  /// Runs a command, and prints why it failed.
  static func reported(_ work: () async throws -> Void) async throws {
    do {
      try await work()
    } catch let code as ExitCode {
      throw code
    } catch {
      let failure = Failure(error)
      Console.problem(failure.message)
      for line in failure.furtherLines { Console.error(line) }
      throw ExitCode(failure.exitCode)
    }
  }
}
