import Foundation

/// Ends a command early at the first SIGINT, SIGTERM or SIGHUP, so that it can still report. The second one ends the program.
///
/// Signals that the program was told to ignore, as nohup and background jobs of shells do, stay ignored.
struct Interrupt: Sendable {
  private static let signals = [SIGINT, SIGTERM, SIGHUP]

  // Dispatch allows to cancel its sources from any thread, and does not say so to the compiler.
  nonisolated(unsafe) private let sources: [any DispatchSourceSignal]
  private let handled: [Int32]

  /// Returns when signals are handled. One that arrives before that may get lost.
  init(_ handler: @escaping @Sendable () -> Void) {
    let registrations = DispatchGroup()
    let handled = Self.signals.filter { number in
      // Function pointers are comparable as numbers only.
      unsafeBitCast(signal(number, SIG_IGN), to: Int.self) != unsafeBitCast(SIG_IGN, to: Int.self)
    }
    self.handled = handled
    self.sources = handled.map { number in
      let source = DispatchSource.makeSignalSource(signal: number)
      registrations.enter()
      source.setRegistrationHandler { registrations.leave() }
      source.setEventHandler {
        handler()
        Self.restore(handled)
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

  private static func restore(_ signals: [Int32]) {
    for number in signals { signal(number, SIG_DFL) }
  }
}
