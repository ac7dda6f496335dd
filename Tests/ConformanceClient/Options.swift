/// What the command line says.
struct Options: Sendable {
  struct InvalidArgument: Error, CustomStringConvertible {
    let description: String
  }

  static let usage = """
    usage: ConnectConformanceClient [--alpn] [--callbacks] [--parallel N] [--case-timeout SECONDS]
      --alpn                   over TLS, let the server choose the version of HTTP (ALPN), and fail a case that goes
                               over another version than it asks for
      --callbacks              make all calls with the API of callbacks instead of async
      --parallel N             make at most N calls at the same time (128)
      --case-timeout SECONDS   give up a call that does not end on its own (15)
    """

  /// Whether the server chooses the version of HTTP over TLS. The client then offers all versions, and checks that the
  /// server's choice is what the case asks for.
  var usesALPN = false
  /// Whether calls are made with callbacks.
  var usesCallbacks = false
  /// How many calls run at the same time. Most wait for a server's delay. Many more would make cases of deadlines fail on a
  /// loaded machine.
  var maximumCalls = 128
  /// After how long a call is given up, so that one that hangs does not hold up the runner.
  var caseTimeout = Duration.seconds(15)
  var showsHelp = false

  init(arguments: some Sequence<String>) throws(InvalidArgument) {
    var arguments = arguments.makeIterator()
    while let argument = arguments.next() {
      switch argument {
      case "--alpn": self.usesALPN = true
      case "--callbacks": self.usesCallbacks = true
      case "--parallel": self.maximumCalls = try Self.number(arguments.next(), argument)
      case "--case-timeout": self.caseTimeout = .seconds(try Self.number(arguments.next(), argument))
      case "--help", "-h": self.showsHelp = true
      default: throw InvalidArgument(description: "unknown argument '\(argument)'")
      }
    }
  }

  private static func number(_ text: String?, _ argument: String) throws(InvalidArgument) -> Int {
    guard let text, let number = Int(text), (1...1_000_000).contains(number) else {
      throw InvalidArgument(description: "\(argument) needs a number from 1 to 1000000")
    }
    return number
  }
}
