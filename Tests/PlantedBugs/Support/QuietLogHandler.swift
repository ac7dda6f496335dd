internal import Logging

/// Takes log lines, so that whoever logs has work to do.
struct QuietLogHandler: LogHandler {
  var metadata: Logger.Metadata = [:]
  var metadataProvider: Logger.MetadataProvider?
  var logLevel = Logger.Level.trace

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {}

  static var logger: Logger { Logger(label: "explored") { _ in QuietLogHandler() } }
}
