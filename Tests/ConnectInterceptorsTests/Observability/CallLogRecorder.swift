import Logging
import ServiceContextModule
import Synchronization

/// Keeps what is logged, for tests to look at.
final class CallLogRecorder: Sendable {
  struct Line: Sendable {
    var level: Logger.Level
    var text: String
    var metadata: [String: String]
  }

  private let state = Mutex<[Line]>([])

  var lines: [Line] { self.state.withLock { $0 } }
  var texts: [String] { self.lines.map(\.text) }

  func removeAll() { self.state.withLock { $0 = [] } }

  /// - Parameter provider: Adds metadata where a line is written.
  func makeLogger(level: Logger.Level = .trace, provider: Logger.MetadataProvider? = nil) -> Logger {
    var logger = Logger(label: "test") { _ in Handler(recorder: self, metadataProvider: provider) }
    logger.logLevel = level
    return logger
  }

  fileprivate func record(_ line: Line) { self.state.withLock { $0.append(line) } }

  private struct Handler: LogHandler {
    let recorder: CallLogRecorder
    var metadataProvider: Logger.MetadataProvider?
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      var metadata = self.metadata
      metadata.merge(self.metadataProvider?.get() ?? [:]) { $1 }
      metadata.merge(event.metadata ?? [:]) { $1 }
      self.recorder.record(
        Line(
          level: event.level,
          text: "\(event.message)",
          metadata: metadata.mapValues { "\($0)" }
        )
      )
    }
  }
}
