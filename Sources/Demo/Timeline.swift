import Connect
import Synchronization

/// The events of one call, in order, with the time since its start.
final class Timeline: Sendable {
  private struct Entry {
    var time: Duration
    var depth: Int
    var stage: String
    var text: String
  }

  private let start = ContinuousClock.now
  private let entries = Mutex<[Entry]>([])

  /// - Parameter depth: How deep the stage is inside the client: 0 for the caller.
  func note(_ stage: String, depth: Int, _ text: String) {
    let time = ContinuousClock.now - self.start
    self.entries.withLock { $0.append(Entry(time: time, depth: depth, stage: stage, text: text)) }
  }

  var elapsed: Duration { ContinuousClock.now - self.start }

  func print() {
    for entry in self.entries.withLock({ $0 }) {
      let indent = String(repeating: "│ ", count: entry.depth)
      let stage = Style.dim(indent) + Style.stage(entry.stage.padded(to: 22 - 2 * entry.depth))
      Swift.print("  \(Style.dim(entry.time.milliseconds.padded(to: 9, left: true)))  \(stage) \(entry.text)")
    }
  }
}

/// The key by which interceptors find the timeline of their call.
enum TimelineKey: CallContextKey {
  static let defaultValue: Timeline? = nil
}

/// Whether interceptors print the types of messages.
enum ShowsTypesKey: CallContextKey {
  static let defaultValue = false
}

extension Duration {
  var milliseconds: String {
    let hundredths = Int(self / .microseconds(10))
    let fraction = String(hundredths % 100)
    return "\(hundredths / 100).\(fraction.count == 1 ? "0" : "")\(fraction) ms"
  }
}

extension String {
  func padded(to width: Int, left: Bool = false) -> String {
    let padding = String(repeating: " ", count: max(width - self.count, 0))
    return left ? padding + self : self + padding
  }
}
