import Foundation
import SwiftProtobuf
import SwiftProtobufPluginLibrary

/// The comments around a declaration, as lines of Swift without the slashes.
struct Comments {
  /// Comments before the declaration with an empty line between; they are about more than the declaration.
  let detached: [[String]]
  /// The comment right before the declaration, then the comment behind it.
  let documentation: [String]

  init(_ location: Google_Protobuf_SourceCodeInfo.Location?) {
    self.detached = (location?.leadingDetachedComments ?? []).map(Self.lines).filter { !$0.isEmpty }
    let leading = Self.lines(location?.leadingComments ?? "")
    let trailing = Self.lines(location?.trailingComments ?? "")
    self.documentation = leading.isEmpty || trailing.isEmpty ? leading + trailing : leading + [""] + trailing
  }

  /// Without empty lines at the ends, and without characters that would end a comment or make Swift warn.
  private static func lines(_ text: String) -> [String] {
    var lines = text.replacingOccurrences(of: "\r\n", with: "\n")
      .components(separatedBy: .newlines)
      .map { line -> String in
        let scalars = line.unicodeScalars.map { CharacterSet.controlCharacters.contains($0) ? " " : $0 }
        let clean = String(String.UnicodeScalarView(scalars)).trimmingTrailingSpaces
        return clean.hasPrefix(" ") ? String(clean.dropFirst()) : clean
      }
    while lines.first == "" { lines.removeFirst() }
    while lines.last == "" { lines.removeLast() }
    return lines
  }
}

extension String {
  fileprivate var trimmingTrailingSpaces: String {
    var text = self[...]
    while text.last == " " { text.removeLast() }
    return String(text)
  }
}
