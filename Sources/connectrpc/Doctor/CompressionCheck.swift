import Connect
import Foundation

/// Checks which compressions a server accepts in requests, and uses in responses.
struct CompressionCheck {
  let probe: CallProbe
  let version: ServerOptions.HTTPVersion?
  let choice: ServerOptions.WireProtocol
  /// Whether there is a health service.
  let isServed: Bool
  let hasReflection: Bool

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

  func run() async -> [Finding] {
    var findings: [Finding] = []
    for pool in Self.pools {
      let answer =
        if self.hasReflection {
          await self.probe.askReflection(self.version, self.choice, compression: pool)
        } else {
          await self.probe.ask(self.version, self.choice, compression: pool)
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
        subject: name,
        verdict: known?.contains(name) == true ? .works : .absent,
        text: text ?? "not known: there is no service to try it with"
      )
    }
    let responses =
      answer.encoding?.lowercased() == name
      ? "responses come in it" : "responses as small as this one come without"
    let isRefused = answer.error.map { $0.code == .unimplemented || $0.code == .internalError } ?? false
    guard isRefused else {
      return Finding(subject: name, verdict: .works, text: "requests are accepted, \(responses)")
    }
    let list = known.map { "; it accepts \($0.joined(separator: ", "))" } ?? ""
    return Finding(
      subject: name,
      verdict: .absent,
      text: "requests are refused (\(answer.reason))\(list)",
      advice: name == "gzip" ? "call without --compress" : nil
    )
  }
}
