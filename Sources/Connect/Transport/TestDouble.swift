/// A transport for tests. Clients over it do not have what a program gives to all of its clients (`ClientSystem`).
package protocol TestDouble {
  /// False for a wrapper around a transport that is none.
  var isTestDouble: Bool { get }
}

extension TestDouble {
  package var isTestDouble: Bool { true }
}
