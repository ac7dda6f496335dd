internal import Connect
internal import Synchronization

/// Single-flight for identical calls: one goes to the network, the others wait for its response.
final class Flights: Sendable {
  /// What a call that waited is to do.
  enum Turn: Sendable {
    /// Go to the network; others wait for this call.
    case lead
    /// Take this response, to a request with these headers.
    case take(HTTPResponse, requestHeaders: Headers)
    /// Go to the network, alone.
    case fly
  }

  /// How the flight of a leader ended.
  enum Landing: Sendable {
    case share(HTTPResponse, requestHeaders: Headers)
    /// It ended for a reason that concerns the leader alone. Another call leads from now on.
    case handOver
    /// The response is for the leader alone. Each waiting call goes to the network.
    case disperse
  }

  typealias Waiter = @Sendable (Turn) -> Void

  /// What the calls of a flight have in common. Calls from before and after a removal from the cache share no flight.
  struct Route: Sendable, Hashable {
    let key: CacheKey
    let removalCount: UInt64
  }

  /// The part of one call in a flight.
  struct Seat: Sendable, Hashable {
    let route: Route
    let id: UInt64
  }

  /// What a call that joins is to do.
  enum Entry {
    /// Go to the network; others wait for this call.
    case lead
    case wait
    /// Go to the network, alone.
    case fly
  }

  private struct Flight {
    var leader: UInt64
    /// When it began, on the cache's clock.
    let start: Duration
    var waiting: [UInt64: Waiter] = [:]
  }

  private let flights = Mutex<[Route: Flight]>([:])
  private static let lastID = Atomic<UInt64>(0)

  /// A number for an attempt of a call.
  static func makeID() -> UInt64 {
    self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// - Parameters:
  ///   - maximumAge: How long ago the response may have been made; nil for however long.
  ///   - onTurn: Called once, later, if the call has to wait and does not leave before.
  func join(_ seat: Seat, at now: Duration, maximumAge: Duration?, onTurn: @escaping Waiter) -> Entry {
    self.flights.withLock { flights in
      guard let flight = flights[seat.route] else {
        flights[seat.route] = Flight(leader: seat.id, start: now)
        return .lead
      }
      if let maximumAge, now - flight.start >= maximumAge { return .fly }
      flights[seat.route]?.waiting[seat.id] = onTurn
      return .wait
    }
  }

  /// Whether this call leads its flight.
  func isLed(from seat: Seat) -> Bool {
    self.flights.withLock { $0[seat.route]?.leader == seat.id }
  }

  /// Ends the flight that a call leads; does nothing for any other call.
  func land(_ seat: Seat, _ landing: Landing) {
    if case .handOver = landing { return self.leave(seat) }
    let flight = self.flights.withLock { flights -> Flight? in
      guard flights[seat.route]?.leader == seat.id else { return nil }
      return flights.removeValue(forKey: seat.route)
    }
    guard let flight else { return }
    for onTurn in flight.waiting.values {
      switch landing {
      case .share(let response, let headers): onTurn(.take(response, requestHeaders: headers))
      case .handOver, .disperse: onTurn(.fly)
      }
    }
  }

  /// Removes a call from its flight. If it led, another call leads from now on.
  func leave(_ seat: Seat) {
    let (route, id) = (seat.route, seat.id)
    // A removed waiter may hold the last reference to something, which must not be released under the lock.
    let (next, _) = self.flights.withLock { flights -> (next: Waiter?, removed: Waiter?) in
      guard let leader = flights[route]?.leader else { return (nil, nil) }
      guard leader == id else { return (nil, flights[route]?.waiting.removeValue(forKey: id)) }
      guard let next = flights[route]?.waiting.first?.key else {
        flights[route] = nil
        return (nil, nil)
      }
      flights[route]?.leader = next
      return (flights[route]?.waiting.removeValue(forKey: next), nil)
    }
    next?(.lead)
  }

  /// How many flights there are.
  var count: Int { self.flights.withLock { $0.count } }
}
