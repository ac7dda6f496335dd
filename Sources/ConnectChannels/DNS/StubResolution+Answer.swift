extension StubResolution {
  /// What a lookup has found.
  package struct Answer: Hashable, Sendable {
    /// One host with its addresses.
    package struct Host: Hashable, Sendable {
      /// The name whose addresses these are: of the search list, or the target of a service.
      package var name: String
      /// Only for a service.
      package var port: Int?
      /// Only for a service: clients try the lowest first.
      package var priority = 0
      /// Only for a service: the share among hosts of the same priority. Zero means very seldom.
      package var weight = 0
      /// IPv6 first, otherwise in the order of the servers' answer. Not sorted by RFC 6724.
      package var addresses: [IPAddress]
    }

    /// For addresses: one host. For a service: its targets, the lowest priority first.
    package var hosts: [Host] = []
    /// Only for texts: one for each TXT record, its strings joined.
    package var texts: [[UInt8]] = []
    /// Only for bindings.
    package var bindings: [ServiceBinding] = []
    /// The lowest of all records; nil for what was found without a server.
    package var timeToLive: Duration?
  }

  /// Why a name has given nothing.
  enum Absence: Hashable {
    case noSuchName(timeToLive: UInt32?)
    case noRecords(timeToLive: UInt32?)
    case tooManyAliases
    case serverFailure
    case unreachable

    /// - Parameter outcome: One without records.
    init(_ outcome: DNSExchange.Outcome) {
      switch outcome {
      case .absent(nameExists: false, let timeToLive): self = .noSuchName(timeToLive: timeToLive)
      case .absent(nameExists: true, let timeToLive): self = .noRecords(timeToLive: timeToLive)
      case .tooManyAliases: self = .tooManyAliases
      case .failed(isAnswered: true): self = .serverFailure
      case .failed(isAnswered: false): self = .unreachable
      case .records: self = .noRecords(timeToLive: nil)
      }
    }

    /// The absence of the family with the higher rank is reported: a failure may hide addresses that exist.
    var rank: Int {
      switch self {
      case .noSuchName: 0
      case .noRecords: 1
      case .tooManyAliases: 2
      case .serverFailure: 3
      case .unreachable: 4
      }
    }
  }

  /// The addresses of one name, of both families.
  struct AddressGroup {
    enum Outcome: Hashable {
      case addresses([IPAddress], timeToLive: UInt32)
      case nothing(Absence)
    }

    let name: DNSName
    private var addresses: [DNSRecordType: [IPAddress]] = [:]
    private var timeToLive = UInt32(Int32.max)
    private var absence: Absence?
    private var finished = 0

    init(name: DNSName) {
      self.name = name
    }

    var isComplete: Bool { self.finished == 2 }
    var hasAddresses: Bool { !self.addresses.isEmpty }

    mutating func add(_ outcome: DNSExchange.Outcome, type: DNSRecordType) {
      self.finished += 1
      guard case .records(let records, _, let timeToLive) = outcome else {
        let absence = Absence(outcome)
        if absence.rank >= self.absence?.rank ?? 0 { self.absence = absence }
        return
      }
      self.timeToLive = min(self.timeToLive, timeToLive)
      var seen: Set<IPAddress> = []
      self.addresses[type] = records.compactMap {
        if case .address(let address) = $0, seen.insert(address).inserted { address } else { nil }
      }
    }

    var outcome: Outcome {
      guard self.hasAddresses else { return .nothing(self.absence ?? .unreachable) }
      let addresses = (self.addresses[.aaaa] ?? []) + (self.addresses[.a] ?? [])
      return .addresses(addresses, timeToLive: self.timeToLive)
    }
  }
}
