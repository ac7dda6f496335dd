internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes what calls are hashed by (gRFC A42).
enum HashPolicyDecoder {
  /// - Parameter place: Of the route's action.
  static func decode(
    _ policies: [Envoy_Config_Route_V3_RouteAction.HashPolicy],
    into forward: inout RouteForward,
    at place: FieldPlace
  ) {
    for (index, policy) in policies.enumerated() {
      let place = place.element("hash_policy", index)
      switch policy.policySpecifier {
      case .header(let header):
        let place = place.field("header")
        if header.headerName.isEmpty { place.field("header_name").report("must be non-empty") }
        var rewrite: RouteHashPolicy.Rewrite?
        if header.hasRegexRewrite {
          rewrite = self.rewrite(header.regexRewrite, at: place)
          if rewrite == nil { continue }
        }
        forward.hashPolicies.append(.header(header.headerName, rewrite: rewrite, isTerminal: policy.terminal))
      case .filterState(let state):
        guard state.key == "io.grpc.channel_id" else { continue }
        forward.hashPolicies.append(RouteHashPolicy(.client, isTerminal: policy.terminal))
      // Others are ignored.
      case nil: continue
      }
    }
  }

  private static func rewrite(
    _ message: Envoy_Type_Matcher_V3_RegexMatchAndSubstitute,
    at place: FieldPlace
  ) -> RouteHashPolicy.Rewrite? {
    let place = place.field("regex_rewrite").field("pattern")
    guard message.hasPattern else {
      place.report("field not present")
      return nil
    }
    let pattern = message.pattern.regex
    guard !pattern.isEmpty else {
      place.field("regex").report("field not present")
      return nil
    }
    if let problem = RegexSyntax.problem(of: pattern) {
      place.field("regex").report("errors compiling regex: \(problem)")
      return nil
    }
    return .init(pattern: pattern, substitution: message.substitution)
  }
}
