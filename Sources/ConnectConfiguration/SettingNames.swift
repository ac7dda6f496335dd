#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The names of all that a provider has, so that a setting that does not exist, such as a misspelt one, is an error.
///
/// swift-configuration's readers tell values, but not which keys there are. So a program says it once more.
public struct SettingNames: Sendable {
  private enum Form: Sendable {
    case environment
    case keys
  }

  private let names: [String]
  private let form: Form

  private init(_ names: [String], _ form: Form) {
    self.names = names
    self.form = form
  }

  /// The names of environment variables: `ORDERS_TLS_TRUST_ROOTS` for `orders.tls.trustRoots`.
  ///
  /// Not for settings without a prefix, since any variable could be one of these. That is an error.
  ///
  /// - Parameter variables: The variables, by default those of the process. Only those that begin as the settings do are looked
  ///   at, so choose a prefix that no other program uses. Kubernetes sets `NAME_SERVICE_HOST`, `NAME_PORT` and others in each
  ///   pod, for each Service of its namespace: such a name is no prefix.
  public static func environment(
    _ variables: [String: String] = ProcessInfo.processInfo.environment
  ) -> SettingNames {
    SettingNames(variables.keys.sorted(), .environment)
  }

  /// Keys with their components joined by dots: `orders.tls.trustRoots`. For providers of your own, and values in memory.
  /// Without a prefix, all keys have to be settings.
  public static func keys(_ keys: some Sequence<String>) -> SettingNames {
    SettingNames(keys.sorted(), .keys)
  }

  // MARK: For settings

  /// What is wrong with the names below a prefix.
  func problems(under prefix: [String]) -> [String] {
    guard !prefix.isEmpty || self.form == .keys else {
      return [
        "the settings have no prefix, so variables of other programs look like settings: give a prefix, or list keys alone"
      ]
    }
    return self.unknown(under: prefix).map { name in
      "\(name) is no setting: \(Self.suggestion(for: name, under: prefix))"
    }
  }

  /// The names below a prefix that no setting has.
  private func unknown(under prefix: [String]) -> [String] {
    let encode = self.form == .environment ? Self.variable : { $0.joined(separator: ".") }
    let start = prefix.isEmpty ? "" : encode(prefix) + (self.form == .environment ? "_" : ".")
    let known = Set(Setting.all.map { encode(prefix + Self.components($0.key)) })
    return self.names.filter { $0.hasPrefix(start) && !known.contains($0) }
  }

  /// A key as people write it, in files and in the environment.
  static func both(_ prefix: [String], _ key: String) -> String {
    let components = prefix + self.components(key)
    return "\(components.joined(separator: ".")) (\(self.variable(components)) in the environment)"
  }

  /// What a name may have been meant to be.
  private static func suggestion(for name: String, under prefix: [String]) -> String {
    let given = self.letters(name)
    let prefix = self.letters(prefix.joined())
    let distances = Setting.all.map {
      (key: $0.key, distance: self.distance(given, prefix + self.letters($0.key)))
    }
    guard let best = distances.min(by: { $0.distance < $1.distance }), best.distance <= 3 else {
      return "remove it, or see the list of settings in the documentation of ConnectConfiguration"
    }
    return "is \(best.key) meant?"
  }

  private static func components(_ key: String) -> [String] { key.split(separator: ".").map(String.init) }

  /// As swift-configuration makes names of variables: an underscore before a capital after a small letter, then all in
  /// capitals, and underscores for all but letters and digits.
  private static func variable(_ components: [String]) -> String {
    components.map { component in
      var result = ""
      var last: Character?
      for character in component {
        if last?.isLowercase == true, character.isUppercase { result += "_" }
        result.append(character)
        last = character
      }
      return String(result.uppercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }
    .joined(separator: "_")
  }

  private static func letters(_ name: String) -> [Character] {
    name.lowercased().filter { $0.isLetter || $0.isNumber }.map(\.self)
  }

  /// How many letters to insert, remove or replace (Levenshtein's distance), of names of some tens of letters.
  private static func distance(_ left: [Character], _ right: [Character]) -> Int {
    guard left.count <= 100 else { return .max }
    var row = Array(0...right.count)
    for (index, letter) in left.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for (other, otherLetter) in right.enumerated() {
        let replaced = diagonal + (letter == otherLetter ? 0 : 1)
        diagonal = row[other + 1]
        row[other + 1] = min(replaced, diagonal + 1, row[other] + 1)
      }
    }
    return row[right.count]
  }
}
