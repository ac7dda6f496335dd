/// An attempt of an ``AddressRace`` to connect, and the connection that came of it.
package struct ConnectionAttempt: Sendable, Hashable {
  /// Never used again by the same race.
  package let number: UInt64
  package let address: EndpointAddress
  /// After which time the attempt should be given up and reported as failed.
  package let timeLimit: Duration
}
