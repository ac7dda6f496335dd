/// How many endpoints are in which state, and gRPC's rule for the state of all of them together.
package struct StateCounts: Sendable, Hashable {
  /// Endpoints without a connection and without an attempt to open one.
  package private(set) var idle = 0
  /// Endpoints to which a first connection is being opened.
  package private(set) var connecting = 0
  /// Endpoints that take calls.
  package private(set) var ready = 0
  /// Endpoints that cannot be reached, or are ejected.
  package private(set) var transientFailure = 0

  /// No endpoints.
  package init() {}

  /// The counts of some states.
  package init(_ states: some Sequence<ConnectivityState>) {
    for state in states { self.add(state) }
  }

  /// How many endpoints were counted, without those that are shut down.
  package var total: Int { self.idle + self.connecting + self.ready + self.transientFailure }

  /// Counts one more endpoint. One that is shut down is not counted.
  package mutating func add(_ state: ConnectivityState) {
    switch state {
    case .idle: self.idle += 1
    case .connecting: self.connecting += 1
    case .ready: self.ready += 1
    case .transientFailure: self.transientFailure += 1
    case .shutdown: break
    }
  }

  /// The state of all: `ready` if one is, else `connecting` if one is, else `idle` if one is, else
  /// `transientFailure`, also without any endpoint.
  package var aggregate: ConnectivityState {
    if self.ready > 0 { return .ready }
    if self.connecting > 0 { return .connecting }
    return self.idle > 0 ? .idle : .transientFailure
  }

  /// The same for policies that keep all endpoints connected, where an idle endpoint is about to connect.
  package var aggregateOfEager: ConnectivityState {
    self.aggregate == .idle ? .connecting : self.aggregate
  }
}
