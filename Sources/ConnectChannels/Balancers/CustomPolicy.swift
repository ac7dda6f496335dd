/// A user's factory of balancers. Closures cannot be compared, so equality is identity.
final class CustomPolicy: Sendable, Hashable {
  let name: String
  let makeBalancer: @Sendable () -> any LoadBalancer

  init(name: String, makeBalancer: @escaping @Sendable () -> any LoadBalancer) {
    self.name = name
    self.makeBalancer = makeBalancer
  }

  static func == (left: CustomPolicy, right: CustomPolicy) -> Bool { left === right }

  func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(self))
  }
}
