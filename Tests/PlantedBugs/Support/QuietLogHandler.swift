internal import Logging

/// Takes log lines, so that whoever logs has work to do, and counts those of ends of calls.
struct QuietLogHandler: LogHandler {
  let ends: Counter
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel = Logger.Level.trace

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let text = "\(event.message)"
    if text == "call completed" || text == "call failed" { self.ends.add() }
  }

  /// - Parameter ends: Counts the lines of ends of calls.
  static func logger(_ ends: Counter) -> Logger {
    Logger(label: "explored") { _ in QuietLogHandler(ends: ends) }
  }
}
