internal import Logging
internal import Synchronization

/// What a client logs of its connections.
final class ConnectionLog: Sendable {
  private let entries = Mutex<[String]>([])

  var logger: Logger {
    var logger = Logger(label: "fleet") { _ in Handler(log: self) }
    logger.logLevel = .debug
    return logger
  }

  /// How many entries contain this text, in the message or in the metadata.
  func count(of text: String) -> Int {
    self.entries.withLock { $0.count { $0.contains(text) } }
  }

  func wait(for text: String, count: Int = 1) async throws {
    try await eventually("'\(text)' in the log") { self.count(of: text) >= count }
  }

  private struct Handler: LogHandler {
    let log: ConnectionLog
    var logLevel = Logger.Level.debug
    var metadata: Logger.Metadata = [:]

    init(log: ConnectionLog) {
      self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let pairs = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      self.log.entries.withLock { $0.append("\(event.message) \(pairs.joined(separator: " "))") }
    }
  }
}
