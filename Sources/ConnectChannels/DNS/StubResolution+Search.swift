extension StubResolution {
  /// What the candidates of the search list have given so far, for the error that ends the search.
  struct SearchProgress {
    var tried: [DNSName] = []
    private var worst: Absence?
    /// The last problem of each server, in the order in which they came up.
    private var problems: [(server: EndpointAddress, problem: String)] = []

    mutating func note(_ absence: Absence) {
      if absence.rank >= self.worst?.rank ?? 0 { self.worst = absence }
    }

    mutating func note(_ problems: [Int: String], servers: [EndpointAddress]) {
      for (index, problem) in problems.sorted(by: { $0.key < $1.key }) {
        self.problems.removeAll { $0.server == servers[index] }
        self.problems.append((servers[index], problem))
      }
    }

    func error(for question: Question) -> ResolutionError {
      self.error(question.name, wanted: question.recordTypes, self.worst ?? .unreachable)
    }

    func error(_ name: String, wanted: String, _ absence: Absence) -> ResolutionError {
      let tried = self.tried.map(\.description).joined(separator: ", ")
      let servers = self.problems.map { "\($0.server) \($0.problem)" }.joined(separator: "; ")
      switch absence {
      case .noSuchName(let timeToLive):
        return ResolutionError(
          .noSuchName,
          message:
            "\"\(name)\" does not exist in DNS (tried: \(tried)); check its spelling and the search list",
          timeToLive: timeToLive.map { .seconds($0) }
        )
      case .noRecords(let timeToLive):
        return ResolutionError(
          .noRecords,
          message: "\"\(name)\" has no \(wanted) record (tried: \(tried)); check that it is the right name, "
            + "and that its servers are up",
          timeToLive: timeToLive.map { .seconds($0) }
        )
      case .tooManyAliases:
        return ResolutionError(
          .tooManyAliases,
          message:
            "the aliases (CNAME) of \"\(name)\" form a loop or too long a chain; correct the DNS zone"
        )
      case .serverFailure:
        return ResolutionError(
          .serverFailure,
          message:
            "no name server could resolve \"\(name)\" (\(servers)); check the name servers and the zone"
        )
      case .unreachable:
        return ResolutionError(
          .unreachable,
          message:
            "no name server answered for \"\(name)\" (\(servers)); check that the configured name servers "
            + "are right and can be reached over UDP and TCP"
        )
      }
    }
  }
}

extension StubResolution.Question {
  /// For error messages.
  var recordTypes: String {
    switch self {
    case .addresses: "A or AAAA"
    case .services: "SRV"
    case .texts: "TXT"
    case .bindings: "HTTPS"
    }
  }
}

extension ResolutionError {
  static func invalidName(_ name: String) -> ResolutionError {
    ResolutionError(
      .invalidName,
      message: "\"\(name)\" is no domain name: at most 255 bytes of ASCII, labels of 1 to 63 bytes with dots "
        + "between them; write international names in Punycode (xn--…)"
    )
  }

  static func noServers(_ name: String) -> ResolutionError {
    ResolutionError(
      .unreachable,
      message: "\"\(name)\" cannot be resolved: no name server is configured; give at least one"
    )
  }

  static func serviceUnavailable(_ name: String, timeToLive: UInt32) -> ResolutionError {
    ResolutionError(
      .serviceUnavailable,
      message: "\"\(name)\" says with the SRV target \".\" that the service is not available; "
        + "check that it is the right name",
      timeToLive: .seconds(timeToLive)
    )
  }
}
