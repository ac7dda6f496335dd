internal import ConnectTesting
internal import NIOCore
internal import NIOHTTP1

/// Records the requests and connections of a server, and lets tests wait for them.
public final class Journal: Sendable {
  /// The journal's state at one moment.
  public struct Snapshot: Sendable {
    /// Connections accepted so far.
    public internal(set) var acceptedConnections = 0
    /// Connections that are open now.
    public internal(set) var openConnections = 0
    /// The number of requests.
    public internal(set) var requestCount = 0
    /// How many requests the client has reset, before or after the end of the response.
    public internal(set) var resetCount = 0
    /// All requests, in the order of arrival; only the first ones if the journal has a limit.
    public internal(set) var requests: [RequestRecord] = []
    fileprivate var countsByPath: [String: Int] = [:]

    /// The requests to one path.
    public func requests(to path: String) -> [RequestRecord] {
      self.requests.filter { $0.path == path }
    }
  }

  private let state = Observed(Snapshot())
  private let limit: Int

  /// - Parameter limit: The number of requests that are kept; the journal only counts later ones.
  init(limit: Int = .max) {
    self.limit = limit
  }

  public var snapshot: Snapshot { self.state.value }

  /// Waits until the recorded state satisfies a condition.
  ///
  /// - Throws: ``LoopbackServerError`` if this takes longer than `timeout`.
  @discardableResult
  public func wait(
    timeout: Duration = .seconds(10),
    until condition: @escaping @Sendable (Snapshot) -> Bool
  ) async throws -> Snapshot {
    let snapshot = await self.state.wait(within: timeout) { condition($0) ? $0 : nil }
    if let snapshot { return snapshot }
    throw LoopbackServerError("not seen within \(timeout); seen: \(self.snapshot.summary)")
  }
}

// MARK: - Writing

extension Journal {
  /// Notes a new connection and returns its number.
  func connectionOpened() -> Int {
    self.state.update { snapshot in
      snapshot.acceptedConnections += 1
      snapshot.openConnections += 1
      return snapshot.acceptedConnections - 1
    }
  }

  func connectionClosed() {
    self.state.update { $0.openConnections -= 1 }
  }

  /// Notes a new request and returns its record, together with the number of earlier ones to its path.
  func requestStarted(
    _ head: HTTPRequestHead,
    version: RequestRecord.Version,
    connection: Int
  ) -> (record: RequestRecord, attempt: Int) {
    let parts = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let path = parts.first.map(String.init) ?? ""
    let limit = self.limit
    return self.state.update { snapshot in
      let record = RequestRecord(
        id: snapshot.requestCount,
        connection: connection,
        version: version,
        method: head.method.rawValue,
        path: path,
        query: parts.count > 1 ? String(parts[1]) : "",
        headers: HeaderFields(head.headers)
      )
      let attempt = snapshot.countsByPath[path, default: 0]
      snapshot.countsByPath[path] = attempt + 1
      snapshot.requestCount += 1
      if snapshot.requests.count < limit { snapshot.requests.append(record) }
      return (record, attempt)
    }
  }

  func update(request id: Int, _ change: (inout RequestRecord) -> Void) {
    self.state.update { snapshot in
      guard snapshot.requests.indices.contains(id) else { return }
      change(&snapshot.requests[id])
    }
  }

  /// Notes that the client has reset a request.
  func requestReset(_ id: Int, code: UInt32) {
    self.state.update { $0.resetCount += 1 }
    self.update(request: id) { $0.resetCode = code }
    self.requestEnded(id, .resetByClient(code))
  }

  /// Notes how a request ended; later notes of the same request are ignored.
  func requestEnded(_ id: Int, _ outcome: RequestRecord.Outcome) {
    self.update(request: id) { $0.outcome = $0.outcome ?? outcome }
  }
}

extension Journal.Snapshot {
  fileprivate var summary: String {
    let requests = self.requests.suffix(20).map { request in
      "\(request.method) \(request.path) (\(request.outcome.map { "\($0)" } ?? "running"))"
    }
    return "\(self.acceptedConnections) connections, \(self.openConnections) open; "
      + (requests.isEmpty ? "no requests" : requests.joined(separator: ", "))
  }
}
