import Foundation

/// Why bytes are not JSON, and where.
struct JSONProblem: CustomStringConvertible {
  /// `line 3, column 10: Invalid value`; without a position if none is known.
  let description: String

  /// Nil if `data` is JSON.
  init?(in data: Data) {
    do {
      _ = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
      return nil
    } catch {
      self.init(reason: Self.reason(of: error), data)
    }
  }

  /// The position is only in the error's text, where Linux has the number of bytes in front of it:
  /// "Invalid value around character 26."
  private static func reason(of error: any Error) -> String {
    (error as NSError).userInfo["NSDebugDescription"] as? String ?? "\(error)"
  }

  private init(reason: String, _ data: Data) {
    if let match = reason.firstMatch(of: /^(.+) (?:around|starting from) character (\d+)\.?$/),
      let offset = Int(match.2), offset <= data.count
    {
      self.description = "\(Self.position(of: offset, in: data)): \(match.1)"
    } else if reason.hasPrefix("Unexpected end of file") {
      self.description = "\(Self.position(of: data.count, in: data)): \(reason)"
    } else {
      self.description = reason
    }
  }

  /// - Returns: The line, and the column in characters, both from 1.
  private static func position(of offset: Int, in data: Data) -> String {
    // Decoded apart, as one character "\r\n" would hide the end of a line.
    let lines = data.prefix(offset).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let column = String(decoding: lines.last ?? Data(), as: UTF8.self).count + 1
    return "line \(lines.count), column \(column)"
  }
}
