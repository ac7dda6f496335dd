extension StubResolution {
  /// The targets of a service, and the addresses that they have so far (RFC 2782).
  ///
  /// Addresses in the additional section of the SRV response save the queries for their target: servers put
  /// whole record sets there, or none.
  struct ServiceTargets {
    /// How many targets are resolved at the same time.
    static let parallelTargets = 8
    /// How many targets are resolved at all: the first by priority.
    static let maximumTargets = 1_024

    /// The lowest priority first, otherwise in the order of the response.
    private var services: [DNSRecord.Service] = []
    private var pending: ArraySlice<DNSName> = []
    private var outcomes: [DNSName: AddressGroup.Outcome] = [:]
    private var timeToLive = UInt32(Int32.max)

    /// - Returns: False if the records say that the service is not available.
    mutating func start(_ records: [DNSRecord.Data], additional: [DNSRecord], timeToLive: UInt32) -> Bool {
      self.timeToLive = timeToLive
      var seen: Set<DNSRecord.Service> = []
      let services = records.compactMap { data -> DNSRecord.Service? in
        guard case .service(let service) = data, service.target != .root, seen.insert(service).inserted else {
          return nil
        }
        return service
      }
      guard !services.isEmpty else { return false }
      // Swift's sort is stable.
      self.services = services.sorted { $0.priority < $1.priority }
      var targets: [DNSName] = []
      var known: Set<DNSName> = []
      for service in self.services where known.insert(service.target).inserted {
        guard targets.count < Self.maximumTargets else { break }
        targets.append(service.target)
      }
      self.takeAddresses(from: additional, of: Set(targets))
      self.pending = targets.filter { self.outcomes[$0] == nil }[...]
      return true
    }

    private mutating func takeAddresses(from additional: [DNSRecord], of targets: Set<DNSName>) {
      for record in additional where targets.contains(record.name) {
        guard case .address(let address) = record.data else { continue }
        var (addresses, timeToLive): ([IPAddress], UInt32) = ([], .max)
        if case .addresses(let found, let time) = self.outcomes[record.name] {
          (addresses, timeToLive) = (found, time)
        }
        guard !addresses.contains(address) else { continue }
        // IPv6 first, as for answers.
        let index = address.family == .v6 ? addresses.firstIndex { $0.family == .v4 } : nil
        addresses.insert(address, at: index ?? addresses.count)
        self.outcomes[record.name] = .addresses(addresses, timeToLive: min(timeToLive, record.timeToLive))
      }
    }

    mutating func nextTarget() -> DNSName? { self.pending.popFirst() }

    mutating func resolved(_ target: DNSName, _ outcome: AddressGroup.Outcome) {
      self.outcomes[target] = outcome
    }

    /// The targets that have addresses. Targets without are left out, unless there are no others.
    func result(of name: String, _ search: SearchProgress) -> Result<Answer, ResolutionError> {
      var answer = Answer()
      var timeToLive = self.timeToLive
      var worst: (target: DNSName, absence: Absence)?
      for service in self.services {
        switch self.outcomes[service.target] {
        case .addresses(let addresses, let time):
          timeToLive = min(timeToLive, time)
          answer.hosts.append(
            Answer.Host(
              name: service.target.description,
              port: Int(service.port),
              priority: Int(service.priority),
              weight: Int(service.weight),
              addresses: addresses
            )
          )
        case .nothing(let absence):
          if absence.rank >= worst?.absence.rank ?? 0 { worst = (service.target, absence) }
        case nil:
          break
        }
      }
      if answer.hosts.isEmpty, let worst {
        var search = search
        search.tried = [worst.target]
        var error = search.error(worst.target.description, wanted: "A or AAAA", worst.absence)
        error.message = "no target of the service \"\(name)\" has an address: " + error.message
        return .failure(error)
      }
      answer.timeToLive = .seconds(timeToLive)
      return .success(answer)
    }
  }
}
