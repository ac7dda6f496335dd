import Foundation

/// Ends a command early at the first SIGINT, SIGTERM or SIGHUP, so that it can still report. Another one, half a second later or
/// more, ends the program. Those that come sooner belong to the first: a terminal that closes sends SIGHUP, and its shell does so,
/// too.
///
/// Signals that the program was told to ignore, as nohup and background jobs of shells do, stay ignored.
struct Interrupt: Sendable {
  private static let signals = [SIGINT, SIGTERM, SIGHUP]

  // Dispatch allows to cancel its sources from any thread, and does not say so to the compiler.
  nonisolated(unsafe) private let sources: [any DispatchSourceSignal]
  private let handled: [Int32]

  /// Returns when signals are handled. One that arrives before that ends the program.
  init(_ handler: @escaping @Sendable () -> Void) {
    let registrations = DispatchGroup()
    let handled = Self.signals.filter { !Self.isIgnored($0) }
    self.handled = handled
    self.sources = handled.map { number in
      let source = DispatchSource.makeSignalSource(signal: number)
      registrations.enter()
      source.setRegistrationHandler {
        #if canImport(Darwin)
        // There, sources see signals beside the default action.
        signal(number, SIG_IGN)
        #endif
        registrations.leave()
      }
      source.setEventHandler {
        handler()
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.5) { Self.restore(handled) }
      }
      source.resume()
      return source
    }
    registrations.wait()
  }

  func stop() {
    for source in self.sources { source.cancel() }
    Self.restore(self.handled)
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    sigaction(number, nil, &action)
    #if canImport(Darwin)
    let handler = action.__sigaction_u.__sa_handler
    #else
    let handler = action.__sigaction_handler.sa_handler
    #endif
    // Function pointers are comparable as numbers only.
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private static func restore(_ signals: [Int32]) {
    for number in signals { signal(number, SIG_DFL) }
  }
}
