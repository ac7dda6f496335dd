/// A regular expression in the style of RE2, for texts of ASCII and Unicode: classes such as `\d` and `\w` are those of ASCII, and
/// characters are Unicode scalars.
///
/// It is matched by Swift's `Regex`, which tries alternatives one after the other: unlike RE2, a pattern with nested repetitions
/// may take very long for some texts.
package struct RegularExpression: Sendable, Hashable {
  /// Why a pattern cannot be used.
  package struct PatternError: Error {
    /// In a few words, with the pattern.
    package let reason: String
  }

  /// `@unchecked Sendable`: the value never changes after `init`. `Regex` compiles its program when it is first used, and `init`
  /// uses it; the standard library replaces the program atomically all the same.
  private final class Program: @unchecked Sendable {
    let regex: Regex<AnyRegexOutput>

    init(_ regex: Regex<AnyRegexOutput>) {
      self.regex = regex
      _ = try? regex.wholeMatch(in: "")
    }
  }

  /// The expression as it was given.
  package let pattern: String
  private let program: Program

  /// Compiles a pattern.
  package init(_ pattern: String) throws(PatternError) {
    self.pattern = pattern
    do {
      self.program = Program(
        try Regex(pattern).matchingSemantics(.unicodeScalar).asciiOnlyWordCharacters().asciiOnlyDigits()
          .asciiOnlyWhitespace().asciiOnlyCharacterClasses()
      )
    } catch {
      throw PatternError(reason: "\"\(pattern)\" is no regular expression: \(error)")
    }
  }

  /// Whether the whole text matches.
  package func matches(_ text: String) -> Bool {
    // An error is one of a part of the pattern that is a program, which no text has.
    (try? self.program.regex.wholeMatch(in: text)) != nil
  }

  /// The text with each match replaced.
  ///
  /// - Parameter substitution: `\0` is the match, `\1` to `\9` are its groups, `\\` is a backslash. A group that there is not, or
  ///   that has no part in the match, is empty.
  package func replacing(in text: String, with substitution: String) -> String {
    text.replacing(self.program.regex) { match in
      var result = ""
      var isEscaped = false
      for character in substitution {
        guard isEscaped else {
          if character == "\\" { isEscaped = true } else { result.append(character) }
          continue
        }
        isEscaped = false
        if let number = character.wholeNumberValue, character.isASCII {
          if number < match.output.count { result += match.output[number].substring ?? "" }
        } else {
          result.append(character)
        }
      }
      return result
    }
  }

  package static func == (left: RegularExpression, right: RegularExpression) -> Bool {
    left.pattern == right.pattern
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(self.pattern) }
}
