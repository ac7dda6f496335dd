import Connect
import ConnectChannels
import ConnectReflection

/// Looks at HTTP and what is above it, by calls of the health service, which change nothing, or of a method that the user gives.
struct CallCheck {
  let host: String
  /// The path of the method; nil for the health service.
  let method: String?
  let server: ServerOptions

  /// The subject of the finding that it is not known whether calls can be made.
  static let unknownSubject = "unknown"

  private static let protocols: [(name: String, choice: ServerOptions.WireProtocol, contentTypes: [String])] =
    [
      ("connect", .connect, ["application/json", "application/proto", "application/connect+"]),
      ("grpc", .grpc, ["application/grpc"]),
      ("grpc-web", .grpcWeb, ["application/grpc-web"]),
    ]

  private var isSecure: Bool { self.host.hasPrefix("https:") }
  private var probe: CallProbe { CallProbe(host: self.host, method: self.method, server: self.server) }

  // MARK: Findings

  func run() async throws -> [Finding] {
    var found: Set<ServerOptions.HTTPVersion> = []
    var findings = try await self.versions(&found)
    // In cleartext, clients begin with HTTP/1.1.
    let version = self.server.httpVersion ?? (found == [.http2] ? .http2 : nil)
    let spoken = try await self.protocols(version, &findings)
    guard let choice = spoken.first else {
      return findings + [self.noProtocol(findings, hasHTTP: !found.isEmpty)].compactMap(\.self)
    }
    findings += try await self.services(version, choice)
    return findings
  }

  /// Why no protocol works; nil if a fatal finding already says why.
  private func noProtocol(_ findings: [Finding], hasHTTP: Bool) -> Finding? {
    func hasStatus(_ status: Int) -> Bool {
      findings.contains { $0.text.hasPrefix("HTTP status \(status)") }
    }
    if hasStatus(404) {
      guard let method = self.method else {
        return Finding(
          Self.unknownSubject,
          .absent,
          "HTTP works; there is no health service to try protocols with",
          advice: "give a method that changes nothing: connectrpc doctor URL/package.Service/Method"
        )
      }
      return Finding(
        Self.unknownSubject,
        .absent,
        "HTTP works; there is no \(method.dropFirst())",
        advice: "check the base path, and the names of package, service and method"
      )
    }
    if hasStatus(401) || hasStatus(403) {
      let text = "HTTP works; the server, or a proxy in front of it, wants credentials"
      return Finding(Self.unknownSubject, .absent, text, advice: "give credentials by -H")
    }
    guard !findings.contains(where: \.isFatal) else { return nil }
    let wantsCertificate = findings.contains { $0.text.contains("client certificate") }
    guard hasHTTP || wantsCertificate else {
      let place =
        switch self.host.socketScheme {
        case nil: "the port"
        case "unix:": "the path of the socket"
        default: "the address of the socket"
        }
      return Finding(
        "protocols",
        .broken,
        "nothing answers over HTTP, so no protocol could be tried",
        advice: "check \(place), and whether the server is up and speaks HTTP there"
      )
    }
    return Finding(
      "protocols",
      .broken,
      "the server speaks neither Connect, gRPC nor gRPC-Web here",
      advice: wantsCertificate
        ? "give --cert and --key of a client that the server trusts"
        : "check port and path, and whether a proxy in front passes gRPC on"
    )
  }

  /// - Parameter found: The versions that work.
  private func versions(_ found: inout Set<ServerOptions.HTTPVersion>) async throws -> [Finding] {
    var findings: [Finding] = []
    var versions: [(String, ServerOptions.HTTPVersion)] = [("HTTP/1.1", .http1), ("HTTP/2", .http2)]
    if self.isSecure { versions.append(("HTTP/3", .http3)) }
    for (name, version) in versions {
      // Any answer shows that a connection of this version works.
      let answer = try await self.probe.ask(version, .connect)
      // Over HTTP/1.1 a connection alone says nothing.
      if answer.status != nil || (version != .http1 && answer.version != nil) {
        found.insert(version)
        findings.append(
          Finding(name, .works, answer.status.map { "HTTP status \($0)" } ?? "answers")
        )
      } else {
        findings.append(Finding(name, .absent, answer.reason))
      }
    }
    return findings
  }

  private func protocols(
    _ version: ServerOptions.HTTPVersion?,
    _ findings: inout [Finding]
  ) async throws -> [ServerOptions.WireProtocol] {
    var spoken: [ServerOptions.WireProtocol] = []
    var hasTrailers: Bool?
    let chosen = self.server.wireProtocol
    for (name, choice, types) in Self.protocols where chosen == .auto || chosen == choice {
      func speaks(_ answer: CallProbe.Answer) -> Bool {
        let type = answer.contentType ?? ""
        return types.contains { type.hasPrefix($0) } && Self.isAnswer(answer, type, of: choice)
      }
      var answer = try await self.probe.ask(version, choice)
      var service = ""
      if answer.status == 404, self.method == nil, !speaks(answer) {
        // There may be another service whose calls change nothing.
        let other = try await self.probe.askReflection(version, choice)
        if other.error == nil { (answer, service) = (other, ", by its reflection") }
      }
      if choice == .grpc { hasTrailers = answer.hasTrailers }
      if answer.hasTrailers == false {
        let text = "the server answers, but its trailers do not arrive"
        findings.append(Finding(name, .broken, text, isFatal: false))
      } else if speaks(answer) || answer.error == nil {
        spoken.append(choice)
        let isHinted = version == .http2 && self.server.httpVersion == nil && choice != .grpc
        let hint = isHinted && !self.isSecure ? ", with --http 2" : ""
        findings.append(
          Finding(name, .works, "answers (\(answer.error?.code.name ?? "ok")\(service))\(hint)")
        )
      } else {
        let type = answer.contentType.map { ", \($0)" } ?? ""
        let what = answer.status.map { "HTTP status \($0)\(type)" } ?? answer.reason
        findings.append(Finding(name, .absent, what))
      }
    }
    if hasTrailers == nil, spoken.contains(.grpc) {
      // The health service has sent no message: it may not be there.
      hasTrailers = try await self.probe.askReflection(version, .grpc).hasTrailers
    }
    if let hasTrailers { findings.append(Self.trailers(hasTrailers, spoken)) }
    return spoken
  }

  /// Whether a response with one of the protocol's content types is one of the protocol.
  private static func isAnswer(
    _ answer: CallProbe.Answer,
    _ type: String,
    of choice: ServerOptions.WireProtocol
  ) -> Bool {
    // gRPC's content type is a prefix of that of gRPC-Web.
    if choice == .grpc { return !type.hasPrefix("application/grpc-web") }
    // Any web server may send JSON. Connect's errors have a code.
    return choice != .connect || answer.error?.hasConnectCode != false
  }

  private static func trailers(_ arrive: Bool, _ spoken: [ServerOptions.WireProtocol]) -> Finding {
    guard !arrive else {
      return Finding("trailers", .works, "they arrive, as gRPC needs")
    }
    let others = spoken.map { "--protocol \($0.rawValue)" }.joined(separator: " or ")
    return Finding(
      "trailers",
      .broken,
      "a response of gRPC ends without them: something in between drops them",
      advice: others.isEmpty
        ? "let proxies pass the trailers of HTTP/2 on, or let the server speak gRPC-Web or Connect"
        : "use \(others), or let proxies pass the trailers of HTTP/2 on",
      isFatal: spoken.isEmpty
    )
  }

  private func services(
    _ version: ServerOptions.HTTPVersion?,
    _ choice: ServerOptions.WireProtocol
  ) async throws -> [Finding] {
    let answer = try await self.probe.ask(version, choice)
    let reflection = await self.reflection(self.server.probing(version, choice))
    let hasReflection = reflection.verdict == .works
    let check = CompressionCheck(
      probe: self.probe,
      version: version,
      choice: choice,
      isServed: answer.error?.code != .unimplemented,
      hasReflection: hasReflection,
      code: self.method == nil ? nil : answer.error?.code
    )
    return try await [self.result(answer, callsWork: hasReflection), reflection] + check.run()
  }

  private func reflection(_ server: ServerOptions) async -> Finding {
    do {
      let names = try await Session.run(Session(host: self.host, server)) {
        try await $0.reflection().serviceNames()
      }
      return Finding("reflection", .works, names.joined(separator: ", "))
    } catch {
      return Finding(
        "reflection",
        .absent,
        Failure(error).message,
        advice: "without it, give list, describe and call a --schema or --proto"
      )
    }
  }

  /// What came of a call of the user's method, or of the health service.
  ///
  /// - Parameter callsWork: Whether another service has answered, so that a failure is one of this service alone.
  private func result(_ answer: CallProbe.Answer, callsWork: Bool) -> Finding {
    let subject = self.method == nil ? "health" : "method"
    switch answer.error?.code {
    case .unauthenticated?, .permissionDenied?:
      return Finding(subject, .absent, answer.reason, advice: "give credentials by -H")
    case .unavailable?, .deadlineExceeded?:
      return Finding(subject, .broken, answer.reason, isFatal: !callsWork)
    default:
      return self.method.map { Self.result(of: $0.dropFirst(), answer) } ?? Self.health(answer)
    }
  }

  private static func result(of method: Substring, _ answer: CallProbe.Answer) -> Finding {
    switch answer.error?.code {
    case nil: return Finding("method", .works, "\(method) answers")
    case .unimplemented?:
      let text = "the server does not have \(method) (\(answer.reason))"
      return Finding("method", .absent, text, advice: "check the names of package, service and method")
    default:
      // An empty message is often wrong, and the service has read it.
      return Finding("method", .works, "\(method) answers: \(answer.reason)")
    }
  }

  private static func health(_ answer: CallProbe.Answer) -> Finding {
    switch answer.error?.code {
    case nil:
      let status = answer.health ?? .unknown
      let text = "the health service answers: \(status.name)"
      guard status == .notServing else {
        return Finding("health", status == .serving ? .works : .absent, text)
      }
      let advice = "calls get through, but the server says that it is not ready for them"
      return Finding("health", .broken, text, advice: advice, isFatal: false)
    case .unimplemented?: return Finding("health", .absent, "there is no grpc.health.v1.Health")
    case .notFound?:
      let text = "the health service answers, and does not know the server as a whole (\(answer.reason))"
      return Finding("health", .absent, text)
    default: return Finding("health", .broken, answer.reason, isFatal: false)
    }
  }
}
