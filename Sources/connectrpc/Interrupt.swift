import Foundation

/// Ends a command early at the first SIGINT or SIGTERM, so that it can still report. The second one ends the program.
struct Interrupt {
  private static let signals = [SIGINT, SIGTERM]

  private let sources: [any DispatchSourceSignal]

  init(_ handler: @escaping @Sendable () -> Void) {
    self.sources = Self.signals.map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler {
        handler()
        Self.restore()
      }
      source.resume()
      return source
    }
  }

  func stop() {
    for source in self.sources { source.cancel() }
    Self.restore()
  }

  private static func restore() {
    for number in self.signals { signal(number, SIG_DFL) }
  }
}
