import Foundation

/// Ends a command early at the first SIGINT, SIGTERM or SIGHUP, so that it can still report. The second one ends the program.
struct Interrupt: Sendable {
  private static let signals = [SIGINT, SIGTERM, SIGHUP]

  // Dispatch allows to cancel its sources from any thread, and does not say so to the compiler.
  nonisolated(unsafe) private let sources: [any DispatchSourceSignal]

  /// Returns when signals are handled. One that arrives before that may get lost.
  init(_ handler: @escaping @Sendable () -> Void) {
    let registrations = DispatchGroup()
    self.sources = Self.signals.map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      registrations.enter()
      source.setRegistrationHandler { registrations.leave() }
      source.setEventHandler {
        handler()
        Self.restore()
      }
      source.resume()
      return source
    }
    registrations.wait()
  }

  func stop() {
    for source in self.sources { source.cancel() }
    Self.restore()
  }

  private static func restore() {
    for number in self.signals { signal(number, SIG_DFL) }
  }
}
