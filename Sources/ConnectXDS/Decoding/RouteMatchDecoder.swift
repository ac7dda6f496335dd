internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes the conditions of routes (gRFC A28, A63).
enum RouteMatchDecoder {
  /// - Returns: Nil for conditions that no call meets, or that clients do not know: the route is left out.
  static func match(_ message: Envoy_Config_Route_V3_RouteMatch, at place: FieldPlace) -> RouteMatch? {
    // Calls have no queries.
    if !message.queryParameters.isEmpty { return nil }
    let path: RouteMatch.Path
    switch message.pathSpecifier {
    case .prefix(let prefix):
      guard self.canBegin(prefix) else { return nil }
      path = .prefix(prefix)
    case .path(let exact):
      guard self.canBePath(exact) else { return nil }
      path = .exact(exact)
    case .safeRegex(let matcher):
      if let problem = RegexSyntax.problem(of: matcher.regex) {
        place.report("error creating path matcher: \(problem)")
        return nil
      }
      path = .regex(matcher.regex)
    case nil:
      place.report("invalid path specifier")
      return nil
    }
    var headers: [HeaderMatch] = []
    for (index, header) in message.headers.enumerated() {
      guard let match = self.header(header, at: place.element("headers", index)) else { continue }
      headers.append(match)
    }
    return RouteMatch(
      path: path,
      isCaseSensitive: message.hasCaseSensitive ? message.caseSensitive.value : true,
      headers: headers,
      fraction: self.fraction(message, at: place)
    )
  }

  /// Whether a path `/service/method` can begin with the text.
  private static func canBegin(_ prefix: String) -> Bool {
    if prefix.isEmpty { return true }
    guard prefix.utf8.first == UInt8(ascii: "/") else { return false }
    let parts = self.parts(prefix)
    return parts.count == 1 || parts.count == 2 && !parts[0].isEmpty
  }

  private static func canBePath(_ path: String) -> Bool {
    guard path.utf8.first == UInt8(ascii: "/") else { return false }
    let parts = self.parts(path)
    return parts.count == 2 && !parts[0].isEmpty && !parts[1].isEmpty
  }

  /// What is between the slashes, after the first slash. At most three parts.
  private static func parts(_ path: String) -> [Substring.UTF8View] {
    path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
  }

  private static func fraction(
    _ message: Envoy_Config_Route_V3_RouteMatch,
    at place: FieldPlace
  ) -> Double? {
    guard message.hasRuntimeFraction, message.runtimeFraction.hasDefaultValue else { return nil }
    guard let perMillion = message.runtimeFraction.defaultValue.perMillion else {
      place.field("runtime_fraction").field("default_value").field("denominator").report(
        "unknown denominator type"
      )
      return nil
    }
    return Double(perMillion) / 1_000_000
  }

  // MARK: - Headers

  private static func header(_ message: Envoy_Config_Route_V3_HeaderMatcher, at place: FieldPlace)
    -> HeaderMatch?
  {
    var match = HeaderMatch(message.name, .present, isInverted: message.invertMatch)
    switch message.headerMatchSpecifier {
    case .exactMatch(let text): match.rule = .exact(text)
    case .prefixMatch(let text): match.rule = .prefix(text)
    case .suffixMatch(let text): match.rule = .suffix(text)
    case .containsMatch(let text): match.rule = .contains(text)
    case .safeRegexMatch(let matcher): match.rule = .regex(matcher.regex)
    case .presentMatch(let isPresent): match.isInverted = message.invertMatch == isPresent
    case .rangeMatch(let range):
      guard range.start <= range.end else {
        place.report("cannot create header matcher: the end of the range is before its start")
        return nil
      }
      match.rule = .range(range.start..<range.end)
    case .stringMatch(let matcher):
      let place = place.field("string_match")
      guard let rule = self.rule(matcher) else {
        place.report("invalid string matcher")
        return nil
      }
      match.rule = rule
      match.ignoresCase = matcher.ignoreCase
      if case .regex(let pattern) = rule {
        if let problem = RegexSyntax.problem(of: pattern) {
          place.report(problem)
          return nil
        }
        if matcher.ignoreCase { place.field("ignore_case").report("not supported for regex matcher") }
      }
      return match
    case nil:
      place.report("invalid header matcher")
      return nil
    }
    if case .regex(let pattern) = match.rule, let problem = RegexSyntax.problem(of: pattern) {
      place.report("cannot create header matcher: \(problem)")
      return nil
    }
    return match
  }

  private static func rule(_ matcher: Envoy_Type_Matcher_V3_StringMatcher) -> HeaderMatch.Rule? {
    switch matcher.matchPattern {
    case .exact(let text): .exact(text)
    case .prefix(let text): .prefix(text)
    case .suffix(let text): .suffix(text)
    case .contains(let text): .contains(text)
    case .safeRegex(let matcher): .regex(matcher.regex)
    case nil: nil
    }
  }
}
