import Foundation

/// Standard output and standard error. Colours where the latter is a terminal that shows them.
enum Console {
  static let isOutputTerminal = isatty(1) == 1
  static let isErrorTerminal = isatty(2) == 1
  private static let isColoured =
    isErrorTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    && ProcessInfo.processInfo.environment["TERM"] != "dumb"

  /// Opens what is missing of standard input, output and error: else sockets would take their numbers.
  static func prepare() {
    for descriptor in 0...2 as ClosedRange<Int32> where fcntl(descriptor, F_GETFD) == -1 {
      // It gets the lowest number that is free. Without an output, writing stays an error.
      _ = open("/dev/null", descriptor == 2 ? O_WRONLY : O_RDONLY)
    }
  }

  /// A text as one line without control characters: what servers say may go to a terminal.
  static func line(_ text: String) -> String {
    let lines = text.split(whereSeparator: \.isNewline).map { line in
      String(
        String.UnicodeScalarView(
          line.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? "\u{fffd}" : scalar
          }
        )
      )
    }
    return lines.joined(separator: "; ")
  }

  /// How wide standard error is, in columns: 80 if it is no terminal, or does not say.
  static var errorWidth: Int {
    var size = winsize()
    guard ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return min(max(Int(size.ws_col), 60), 200)
  }

  static func output(_ text: String) { self.write(Array("\(text)\n".utf8), to: 1) }

  static func error(_ text: String) { self.write(Array("\(text)\n".utf8), to: 2) }

  /// A line on the terminal in place of the one that was there before; none for empty text.
  static func status(_ text: String) { self.write(Array("\r\u{1b}[K\(text)".utf8), to: 2) }

  static func bad(_ text: String) -> String { self.wrap(text, "31") }
  static func dim(_ text: String) -> String { self.wrap(text, "2") }
  static func name(_ text: String) -> String { self.wrap(text, "36") }

  private static func wrap(_ text: String, _ code: String) -> String {
    self.isColoured ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }

  /// At once, so that each message is there when it has come. A reader that is gone ends the program, as it ends others in a pipe.
  private static func write(_ bytes: [UInt8], to descriptor: Int32) {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = Foundation.write(
          descriptor,
          UnsafeRawBufferPointer(rebasing: rest).baseAddress,
          rest.count
        )
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno == EPIPE {
          exit(128 + SIGPIPE)
        } else if errno == EAGAIN {
          // Somebody has made the pipe non-blocking.
          var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&ready, 1, -1)
        } else if errno != EINTR {
          guard descriptor == 1 else { return }
          self.error("error: cannot write the output: \(String(cString: strerror(errno)))")
          exit(1)
        }
      }
    }
  }
}
