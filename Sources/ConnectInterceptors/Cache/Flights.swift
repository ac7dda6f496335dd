internal import Connect
internal import Synchronization

/// Calls under way that will have the same response: one goes to the network, the others wait for what it brings.
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
    /// It ended for a reason of this call's alone.
    case handOver
    /// It brought something that only this call may have.
    case disperse
  }

  typealias Waiter = @Sendable (Turn) -> Void

  private struct Flight {
    var leader: UInt64
    var waiting: [UInt64: Waiter] = [:]
  }

  private let flights = Mutex<[CacheKey: Flight]>([:])
  private let lastID = Atomic<UInt64>(0)

  /// A number for a call that takes part.
  func makeID() -> UInt64 {
    self.lastID.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// - Parameter onTurn: Called once, later, if the call has to wait and does not leave before.
  /// - Returns: Whether the call leads, so that it need not wait.
  func join(_ key: CacheKey, _ id: UInt64, onTurn: @escaping Waiter) -> Bool {
    self.flights.withLock { flights in
      guard flights[key] != nil else {
        flights[key] = Flight(leader: id)
        return true
      }
      flights[key]?.waiting[id] = onTurn
      return false
    }
  }

  /// Ends the flight that a call leads; does nothing for any other call.
  func land(_ key: CacheKey, _ id: UInt64, _ landing: Landing) {
    if case .handOver = landing { return self.leave(key, id) }
    let flight = self.flights.withLock { flights -> Flight? in
      guard flights[key]?.leader == id else { return nil }
      return flights.removeValue(forKey: key)
    }
    guard let flight else { return }
    for onTurn in flight.waiting.values {
      switch landing {
      case .share(let response, let headers): onTurn(.take(response, requestHeaders: headers))
      case .handOver, .disperse: onTurn(.fly)
      }
    }
  }

  /// Takes a call out, whatever its part. If it led, another leads from now on.
  func leave(_ key: CacheKey, _ id: UInt64) {
    // What is taken out may be the last to hold on to something, and must not be let go of under the lock.
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

  /// How many flights there are.
  var count: Int { self.flights.withLock { $0.count } }
}
