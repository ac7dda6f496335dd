import Connect
import ConnectReflection

/// Looks at HTTP and what is above it, by calls of the health service, which change nothing.
struct CallCheck {
  let host: String
  let server: ServerOptions

  /// The subject of the finding that it is not known whether calls can be made.
  static let unknownSubject = "unknown"

  private static let protocols: [(name: String, choice: ServerOptions.WireProtocol, contentTypes: [String])] =
    [
      ("connect", .connect, ["application/json", "application/proto"]),
      ("grpc", .grpc, ["application/grpc"]),
      ("grpc-web", .grpcWeb, ["application/grpc-web"]),
    ]

  private var isSecure: Bool { self.host.hasPrefix("https:") }
  private var probe: CallProbe { CallProbe(host: self.host, server: self.server) }

  // MARK: Findings

  func run() async -> [Finding] {
    var found: Set<ServerOptions.HTTPVersion> = []
    var findings = await self.versions(&found)
    // In cleartext, clients begin with HTTP/1.1.
    let version = self.server.httpVersion ?? (found == [.http2] ? .http2 : nil)
    let spoken = await self.protocols(version, &findings)
    guard let choice = spoken.first else {
      if findings.contains(where: { $0.text.hasPrefix("HTTP status 404") }) {
        findings.append(
          Finding(
            subject: Self.unknownSubject,
            verdict: .absent,
            text: "HTTP works; there is no health service to try protocols with",
            advice: "try call with a method of the service and --schema or --proto"
          )
        )
        return findings
      }
      // A fatal finding already says why.
      guard !findings.contains(where: \.isFatal) else { return findings }
      let wantsCertificate = findings.contains { $0.text.contains("client certificate") }
      guard !found.isEmpty || wantsCertificate else {
        let place = self.host.hasPrefix("unix:") ? "the path of the socket" : "the port"
        findings.append(
          Finding(
            subject: "protocols",
            verdict: .broken,
            text: "nothing answers over HTTP, so no protocol could be tried",
            advice: "check \(place), and whether the server is up and speaks HTTP there"
          )
        )
        return findings
      }
      findings.append(
        Finding(
          subject: "protocols",
          verdict: .broken,
          text: "the server speaks neither Connect, gRPC nor gRPC-Web here",
          advice: wantsCertificate
            ? "give --cert and --key of a client that the server trusts"
            : "check port and path, and whether a proxy in front passes gRPC on"
        )
      )
      return findings
    }
    findings += await self.services(version, choice)
    return findings
  }

  /// - Parameter found: The versions that work.
  private func versions(_ found: inout Set<ServerOptions.HTTPVersion>) async -> [Finding] {
    var findings: [Finding] = []
    var versions: [(String, ServerOptions.HTTPVersion)] = [("HTTP/1.1", .http1), ("HTTP/2", .http2)]
    if self.isSecure { versions.append(("HTTP/3", .http3)) }
    for (name, version) in versions {
      // Any answer shows that a connection of this version works.
      let answer = await self.probe.ask(version, .connect)
      // Over HTTP/1.1 a connection alone says nothing.
      if answer.status != nil || (version != .http1 && answer.version != nil) {
        found.insert(version)
        findings.append(
          Finding(
            subject: name,
            verdict: .works,
            text: answer.status.map { "HTTP status \($0)" } ?? "answers"
          )
        )
      } else {
        findings.append(Finding(subject: name, verdict: .absent, text: answer.reason))
      }
    }
    return findings
  }

  private func protocols(
    _ version: ServerOptions.HTTPVersion?,
    _ findings: inout [Finding]
  ) async -> [ServerOptions.WireProtocol] {
    var spoken: [ServerOptions.WireProtocol] = []
    var hasTrailers: Bool?
    for (name, choice, types) in Self.protocols {
      let answer = await self.probe.ask(version, choice)
      if choice == .grpc { hasTrailers = answer.hasTrailers }
      let type = answer.contentType ?? ""
      // gRPC's content type is a prefix of that of gRPC-Web.
      let isSpoken =
        types.contains { type.hasPrefix($0) } && (choice != .grpc || !type.hasPrefix("application/grpc-web"))
      if answer.hasTrailers == false {
        let text = "the server answers, but its trailers do not arrive"
        findings.append(Finding(subject: name, verdict: .broken, text: text, isFatal: false))
      } else if isSpoken || answer.error == nil {
        spoken.append(choice)
        let isHinted = version == .http2 && self.server.httpVersion == nil && choice != .grpc
        let hint = isHinted && !self.isSecure ? ", with --http 2" : ""
        findings.append(
          Finding(subject: name, verdict: .works, text: "answers (\(answer.error?.code.name ?? "ok"))\(hint)")
        )
      } else {
        let what =
          answer.status.map { "HTTP status \($0)" + (type.isEmpty ? "" : ", \(type)") } ?? answer.reason
        findings.append(Finding(subject: name, verdict: .absent, text: what))
      }
    }
    if hasTrailers == nil, spoken.contains(.grpc) {
      // The health service has sent no message: it may not be there.
      hasTrailers = await self.probe.askReflection(version, .grpc).hasTrailers
    }
    if let hasTrailers { findings.append(Self.trailers(hasTrailers, spoken)) }
    return spoken
  }

  private static func trailers(_ arrive: Bool, _ spoken: [ServerOptions.WireProtocol]) -> Finding {
    guard !arrive else {
      return Finding(subject: "trailers", verdict: .works, text: "they arrive, as gRPC needs")
    }
    let others = spoken.map { "--protocol \($0.rawValue)" }.joined(separator: " or ")
    return Finding(
      subject: "trailers",
      verdict: .broken,
      text: "a response of gRPC ends without them: something in between drops them",
      advice: others.isEmpty
        ? "let proxies pass the trailers of HTTP/2 on, or let the server speak gRPC-Web or Connect"
        : "use \(others), or let proxies pass the trailers of HTTP/2 on",
      isFatal: spoken.isEmpty
    )
  }

  private func services(
    _ version: ServerOptions.HTTPVersion?,
    _ choice: ServerOptions.WireProtocol
  ) async -> [Finding] {
    let health = await self.probe.ask(version, choice)
    var findings = [self.health(health)]
    var server = self.server
    server.httpVersion = version
    server.wireProtocol = choice
    server.timeout = server.timeout ?? TimeSpan(argument: "5s")
    var hasReflection = false
    do {
      let names = try await Session.run(Session(host: self.host, server)) {
        try await $0.reflection().serviceNames()
      }
      findings.append(Finding(subject: "reflection", verdict: .works, text: names.joined(separator: ", ")))
      hasReflection = true
    } catch {
      findings.append(
        Finding(
          subject: "reflection",
          verdict: .absent,
          text: Failure(error).message,
          advice: "without it, give list, describe and call a --schema or --proto"
        )
      )
    }
    let check = CompressionCheck(
      probe: self.probe,
      version: version,
      choice: choice,
      isServed: health.error?.code != .unimplemented,
      hasReflection: hasReflection
    )
    return findings + (await check.run())
  }

  private func health(_ answer: CallProbe.Answer) -> Finding {
    switch answer.error?.code {
    case nil: Finding(subject: "health", verdict: .works, text: "the health service answers")
    case .unimplemented?:
      Finding(subject: "health", verdict: .absent, text: "there is no grpc.health.v1.Health")
    case .unauthenticated?, .permissionDenied?:
      Finding(subject: "health", verdict: .absent, text: answer.reason, advice: "give credentials by -H")
    default: Finding(subject: "health", verdict: .broken, text: answer.reason)
    }
  }
}
