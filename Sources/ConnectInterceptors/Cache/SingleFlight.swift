internal import Connect
internal import Synchronization

/// Single-flight for identical calls: one goes to the network, the others wait for its response.
final class SingleFlight: Sendable {
  /// What a call does that has waited.
  enum WaitResult: Sendable {
    /// Go to the network; others wait for this call.
    case lead
    /// Take this response, to a request with these headers.
    case response(HTTPResponse, requestHeaders: Headers)
    /// Go to the network, alone.
    case proceedAlone
  }

  /// How the request of a leader ended.
  enum Outcome: Sendable {
    case share(HTTPResponse, requestHeaders: Headers)
    /// It ended for a reason that concerns the leader alone. Another call leads from now on.
    case handOver
    /// The response is for the leader alone. Each waiting call goes to the network.
    case doNotShare
  }

  typealias Waiter = @Sendable (WaitResult) -> Void

  /// What the calls of a flight have in common. Calls from before and after a removal from the cache share no flight.
  struct Key: Sendable, Hashable {
    let cacheKey: CacheKey
    let removalCount: UInt64
  }

  /// An attempt of one call in a flight.
  struct Member: Sendable, Hashable {
    let key: Key
    let id: UInt64
  }

  /// What a call does that joins.
  enum JoinResult {
    /// Go to the network; others wait for this call.
    case lead
    case wait
    /// Go to the network, alone.
    case proceedAlone
  }

  private struct Flight {
    var leader: UInt64
    /// When it began, on the cache's clock.
    let start: Duration
    var waiting: [UInt64: Waiter] = [:]
  }

  private let flights = Mutex<[Key: Flight]>([:])
  private static let lastID = Atomic<UInt64>(0)

  /// A number for an attempt of a call.
  static func makeID() -> UInt64 {
    self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// - Parameters:
  ///   - maxAge: How long ago the response may have been made; nil for however long.
  ///   - onEnd: Called once, later, if the call has to wait and does not leave before.
  func join(_ member: Member, at now: Duration, maxAge: Duration?, onEnd: @escaping Waiter) -> JoinResult {
    self.flights.withLock { flights in
      guard let flight = flights[member.key] else {
        flights[member.key] = Flight(leader: member.id, start: now)
        return .lead
      }
      if let maxAge, now - flight.start >= maxAge { return .proceedAlone }
      flights[member.key]?.waiting[member.id] = onEnd
      return .wait
    }
  }

  /// Whether this call leads its flight.
  func isLeader(_ member: Member) -> Bool {
    self.flights.withLock { $0[member.key]?.leader == member.id }
  }

  /// Ends the flight that a call leads; does nothing for any other call.
  func finish(_ member: Member, _ outcome: Outcome) {
    if case .handOver = outcome { return self.leave(member) }
    let flight = self.flights.withLock { flights -> Flight? in
      guard flights[member.key]?.leader == member.id else { return nil }
      return flights.removeValue(forKey: member.key)
    }
    guard let flight else { return }
    for onEnd in flight.waiting.values {
      switch outcome {
      case .share(let response, let headers): onEnd(.response(response, requestHeaders: headers))
      case .handOver, .doNotShare: onEnd(.proceedAlone)
      }
    }
  }

  /// Removes a call from its flight. If it led, another call leads from now on.
  func leave(_ member: Member) {
    let (key, id) = (member.key, member.id)
    // A removed waiter may hold the last reference to something, which must not be released under the lock.
    let (next, _) = self.flights.withLock { flights -> (next: Waiter?, removed: Waiter?) in
      guard let leader = flights[key]?.leader else { return (nil, nil) }
      guard leader == id else { return (nil, flights[key]?.waiting.removeValue(forKey: id)) }
      guard let next = flights[key]?.waiting.first?.key else {
        flights[key] = nil
        return (nil, nil)
      }
      flights[key]?.leader = next
      return (flights[key]?.waiting.removeValue(forKey: next), nil)
    }
    next?(.lead)
  }
}
