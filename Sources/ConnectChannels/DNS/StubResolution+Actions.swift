extension StubResolution {
  /// Names a query of one lookup; never used again within the lookup.
  package struct QueryID: Hashable, Sendable {
    let number: Int
  }

  package enum Transport: Hashable, Sendable, CustomStringConvertible {
    case udp, tcp

    package var description: String { self == .udp ? "UDP" : "TCP" }
  }

  /// A query to send.
  package struct Query: Hashable, Sendable {
    package var id: QueryID
    package var server: EndpointAddress
    package var transport: Transport
    /// Without the length prefix that TCP needs (``DNSStream``).
    package var bytes: [UInt8]
    /// After this time without `received` or `failed`, ``StubResolution/timedOut(_:using:)`` is due.
    package var timeout: Duration
  }

  package enum Action: Sendable {
    /// Send the query. Only datagrams from the server's address and port may be given to
    /// ``StubResolution/received(_:for:using:)``.
    case send(Query)
    /// The query does not matter any more: close its socket, cancel its timer.
    case stop(QueryID)
    /// The result, once, as the last action.
    case finish(Result<Answer, ResolutionError>)
  }

  package enum Question: Hashable, Sendable {
    case addresses(of: String)
    case services(of: String)
    case texts(of: String)
    /// HTTPS records.
    case bindings(of: String)

    package var name: String {
      switch self {
      case .addresses(let name), .services(let name), .texts(let name), .bindings(let name): name
      }
    }
  }
}
