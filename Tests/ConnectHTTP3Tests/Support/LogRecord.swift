internal import Logging
internal import Synchronization
internal import XCTest

/// The messages that a client logs.
final class LogRecord: Sendable {
  private let messages = Mutex<[String]>([])

  var logger: Logger {
    var logger = Logger(label: "test") { _ in Handler(record: self) }
    logger.logLevel = .debug
    return logger
  }

  /// Waits until a message contains this text.
  ///
  /// - Parameter meanwhile: Runs at least once, and again and again while there is no such message.
  func wait(
    for text: String,
    file: StaticString = #filePath,
    line: UInt = #line,
    _ meanwhile: () async -> Void = {}
  ) async throws {
    let end = ContinuousClock.now + .seconds(20)
    repeat {
      await meanwhile()
      if self.messages.withLock({ $0.contains { $0.contains(text) } }) { return }
      try await Task.sleep(for: .milliseconds(2))
    } while ContinuousClock.now < end
    XCTFail("not logged: \(text)", file: file, line: line)
  }

  private struct Handler: LogHandler {
    let record: LogRecord
    var logLevel = Logger.Level.debug
    var metadata: Logger.Metadata = [:]

    init(record: LogRecord) {
      self.record = record
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      self.record.messages.withLock { $0.append("\(event.message)") }
    }
  }
}
