import Foundation
import Synchronization

/// Standard output and standard error. Uses colours if standard error is a terminal that shows them.
enum Console {
  static let isOutputTerminal = isatty(1) == 1
  static let isErrorTerminal = isatty(2) == 1
  private static let isColoured =
    isErrorTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    && ProcessInfo.processInfo.environment["TERM"] != "dumb"

  /// Opens missing standard input, output and error: otherwise sockets would take their numbers.
  static func prepare() {
    for descriptor in 0...2 as ClosedRange<Int32> where fcntl(descriptor, F_GETFD) == -1 {
      // The new descriptor gets the lowest free number. A missing output is opened for reading, so that writing stays an error.
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

  /// A text's lines without control characters.
  static func lines(_ text: String) -> [String] {
    text.split(whereSeparator: \.isNewline).map { self.line(String($0)) }
  }

  /// How wide standard error is, in columns: 80 if it is no terminal, or does not say.
  static var errorWidth: Int {
    var size = winsize()
    guard ioctl(2, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return min(max(Int(size.ws_col), 60), 200)
  }

  static func output(_ text: String) { self.write(Array("\(text)\n".utf8), to: 1) }

  /// The same JSON without the control characters that JSON allows, DEL and C1: terminals obey some of them.
  static func json(_ text: String) -> String {
    let controls = Unicode.Scalar(0x7F)...Unicode.Scalar(0x9F)
    guard text.unicodeScalars.contains(where: controls.contains) else { return text }
    return text.unicodeScalars.reduce(into: "") { result, scalar in
      if controls.contains(scalar) {
        result += "\\u00" + String(scalar.value, radix: 16)
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
  }

  static func error(_ text: String) { self.write(Array("\(text)\n".utf8), to: 2) }

  /// Says on standard error what has failed.
  static func problem(_ text: String) { self.error("\(self.bad("error:")) \(self.line(text))") }

  /// Says something on standard error that is no error, once.
  static func note(_ text: String) {
    guard self.notes.withLock({ $0.insert(text).inserted }) else { return }
    self.error("\(self.dim("note:")) \(self.line(text))")
  }

  private static let notes = Mutex<Set<String>>([])

  /// Replaces the last status line on the terminal; empty text removes it.
  static func status(_ text: String) { self.write(Array("\r\u{1b}[K\(text)".utf8), to: 2) }

  static func bad(_ text: String) -> String { self.wrap(text, "31") }
  static func dim(_ text: String) -> String { self.wrap(text, "2") }
  static func name(_ text: String) -> String { self.wrap(text, "36") }

  private static func wrap(_ text: String, _ code: String) -> String {
    self.isColoured ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text
  }

  /// Unbuffered, so that each message is shown when it comes. If the reader is gone, the program ends, as is usual in pipes.
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
