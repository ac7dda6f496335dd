import Foundation

/// Colours, if the output is a terminal that shows them.
enum Style {
  private static let isColoured =
    isatty(1) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil

  static func bold(_ text: String) -> String { self.wrap(text, "1") }
  static func dim(_ text: String) -> String { self.wrap(text, "2") }
  static func good(_ text: String) -> String { self.wrap(text, "32") }
  static func bad(_ text: String) -> String { self.wrap(text, "31") }
  static func stage(_ text: String) -> String { self.wrap(text, "36") }

  /// Printed beside times: times of a debug build say little about the cost of calls.
  static var build: String {
    #if DEBUG
    self.dim(" · debug build")
    #else
    ""
    #endif
  }

  private static func wrap(_ text: String, _ code: String) -> String {
    self.isColoured ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }
}
