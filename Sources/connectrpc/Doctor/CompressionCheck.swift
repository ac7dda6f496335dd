import Connect
import Foundation

/// Checks which compressions a server accepts in requests, and uses in responses.
struct CompressionCheck {
  let probe: CallProbe
  let version: ServerOptions.HTTPVersion?
  let choice: ServerOptions.WireProtocol
  /// Whether there is a health service, or the user's method.
  let isServed: Bool
  let hasReflection: Bool
  /// The error that an uncompressed call of the user's method ends with.
  let code: Code?

  /// The compressions of this build.
  private static var pools: [any CompressionPool] {
    var pools: [any CompressionPool] = [GzipCompressionPool()]
    #if Brotli
    pools.append(BrotliCompressionPool())
    #endif
    #if Zstd
    pools.append(ZstdCompressionPool())
    #endif
    return pools
  }

  func run() async throws -> [Finding] {
    var findings: [Finding] = []
    for pool in Self.pools {
      let answer =
        if self.hasReflection {
          try await self.probe.askReflection(self.version, self.choice, compression: pool)
        } else {
          try await self.probe.ask(self.version, self.choice, compression: pool)
        }
      findings.append(self.finding(pool.name, answer))
    }
    return findings
  }

  private func finding(_ name: String, _ answer: CallProbe.Answer) -> Finding {
    let known = answer.acceptedEncodings?.split(separator: ",").map {
      $0.trimmingCharacters(in: .whitespaces).lowercased()
    }
    // Without a service that answers, only the server's own list is known.
    guard self.hasReflection || self.isServed else {
      let text = known.map {
        $0.contains(name) ? "requests are accepted, as the server says" : "not in the server's list"
      }
      return Finding(
        name,
        known?.contains(name) == true ? .works : .absent,
        text ?? "not known: there is no service to try it with"
      )
    }
    let responses =
      answer.encoding?.lowercased() == name
      ? "responses come in it" : "responses as small as this one come without"
    switch self.verdict(answer) {
    case .accepted:
      return Finding(name, .works, "requests are accepted, \(responses)")
    case .unknown:
      return Finding(name, .absent, "not known: \(answer.reason)")
    case .refused: break
    }
    let list = known.map { "; it accepts \($0.joined(separator: ", "))" } ?? ""
    return Finding(
      name,
      .absent,
      "requests are refused (\(answer.reason))\(list)",
      advice: name == "gzip" ? "call without --compress" : nil
    )
  }

  /// Whether only a method that has read its request fails with this code.
  private static func isOfMethod(_ code: Code) -> Bool {
    switch code {
    case .invalidArgument, .notFound, .alreadyExists, .failedPrecondition, .outOfRange, .aborted: true
    default: false
    }
  }

  private enum Verdict { case accepted, refused, unknown }

  private func verdict(_ answer: CallProbe.Answer) -> Verdict {
    guard let error = answer.error else { return .accepted }
    if !self.hasReflection, error.code == self.code, Self.isOfMethod(error.code) { return .accepted }
    if (answer.status ?? error.httpStatus) == 415 { return .refused }
    switch error.code {
    // Servers use both for a compression that they do not know.
    case .unimplemented, .internalError: return .refused
    // The health service has read the request, and does not know the service in it.
    case .notFound: return self.hasReflection ? .unknown : .accepted
    // The call has failed before anybody had to read the message, or it is not known where.
    default: return .unknown
    }
  }
}
