internal import Connect

/// Routes the calls of one method. What does not depend on the call is made once, so that most calls allocate nothing here.
final class MethodRouter: CallRouter {
  private let candidates: [Candidate]
  private let numbers: CallNumbers
  private let noRoute: ConnectError

  /// - Parameters:
  ///   - candidates: The routes whose paths match, in their order.
  ///   - noRoute: Why calls that no route matches fail.
  init(_ candidates: [Candidate], numbers: CallNumbers, noRoute: ConnectError) {
    self.candidates = candidates
    self.numbers = numbers
    self.noRoute = noRoute
  }

  /// Refuses all calls.
  convenience init(refusing error: ConnectError) {
    self.init([], numbers: CallNumbers(seed: 0), noRoute: error.beforeRoutes)
  }

  var constantRules: CallRules? { self.candidates.first?.constantRules }

  func rules(forHeaders headers: Headers) -> CallRules {
    var random = self.numbers.next()
    for index in self.candidates.indices where self.candidates[index].matches(headers, &random) {
      return self.candidates[index].rules(headers, &random)
    }
    return .refused(self.noRoute)
  }
}

extension MethodRouter {
  /// A route whose path matches the method's. A class, so that a call copies none of it.
  final class Candidate: Sendable {
    /// A cluster, up to a number of the sum of weights.
    private struct Share: Sendable {
      let end: UInt64
      /// Nil if calls of this share cannot be made.
      let destination: CallDestination?
      /// Why they cannot.
      let error: ConnectError?
      /// Nil for calls without faults.
      let fault: FaultInjection?
    }

    private let route: PreparedRoute
    private let shares: [Share]
    private let clientHash: UInt64
    /// Nil if they leave calls as they are.
    private let methodRules: MethodRules?
    /// Why all calls are refused; nil if they are not.
    private let refusal: ConnectError?

    /// - Parameters:
    ///   - destinations: Of the route's clusters, in their order.
    ///   - clientHash: The hash of this client.
    init(
      _ route: PreparedRoute,
      _ destinations: [Result<CallDestination, ConnectError>],
      _ rules: MethodRules,
      clientHash: UInt64
    ) {
      self.route = route
      self.methodRules = rules.areEmpty ? nil : rules
      self.clientHash = clientHash
      self.refusal = route.route.refusal.map { ConnectError.notRouted($0) }
      var end: UInt64 = 0
      var shares: [Share] = []
      for (cluster, destination) in zip(route.route.clusters, destinations) where cluster.weight > 0 {
        end += UInt64(cluster.weight)
        let fault = cluster.fault ?? route.route.fault
        let active = fault?.isActive == true ? fault : nil
        switch destination {
        case .success(let known):
          shares.append(Share(end: end, destination: known, error: nil, fault: active))
        case .failure(let error):
          shares.append(Share(end: end, destination: nil, error: error, fault: nil))
        }
      }
      self.shares = shares
    }

    /// - Parameter random: The call's random numbers.
    func matches(_ headers: Headers, _ random: inout SeededRandom) -> Bool {
      if self.shares.isEmpty, self.refusal == nil { return false }
      if !self.route.conditions.isEmpty {
        for condition in self.route.conditions where !condition.holds(for: headers) { return false }
      }
      guard let fraction = self.route.route.match.fraction else { return true }
      return random.fraction() < fraction
    }

    /// What holds for all calls, if the route takes each one, and leads it to one place.
    var constantRules: CallRules? {
      let route = self.route
      guard route.conditions.isEmpty, route.route.match.fraction == nil, route.hashPolicies.isEmpty,
        self.refusal == nil, self.shares.count == 1, self.shares[0].fault == nil,
        let destination = self.shares[0].destination
      else { return nil }
      return .route(self.methodRules, destination)
    }

    /// What holds for a call that the route takes.
    func rules(_ headers: Headers, _ random: inout SeededRandom) -> CallRules {
      if let refusal = self.refusal { return .refused(refusal) }
      let index = self.choose(&random)
      guard var destination = self.shares[index].destination else {
        return .refused(self.shares[index].error ?? .notRouted("the route leads nowhere"))
      }
      if !self.route.hashPolicies.isEmpty, let cluster = destination.cluster, let hash = self.hash(headers) {
        destination = CallDestination(cluster: cluster, hash: hash)
      }
      guard let fault = self.shares[index].fault, let decided = fault.decide(headers, &random) else {
        return .route(self.methodRules, destination)
      }
      return .fault(
        CallFault(
          delay: decided.delay,
          error: decided.error,
          maximumActive: fault.maximumActive,
          self.methodRules,
          destination
        )
      )
    }

    /// The index of the share of a call. Routes without shares are refused before.
    private func choose(_ random: inout SeededRandom) -> Int {
      let last = self.shares.count - 1
      if last <= 0 { return last }
      let number = random.next().multipliedFullWidth(by: self.shares[last].end).high
      return self.shares.firstIndex { number < $0.end } ?? last
    }

    /// Of all policies, up to a terminal one (gRFC A42).
    private func hash(_ headers: Headers) -> UInt64? {
      var hash: UInt64?
      for policy in self.route.hashPolicies {
        let next: UInt64? =
          switch policy.kind {
          case .header(let name):
            headers.value(ofLowercased: name).map { XXH64.hash(policy.rewrite?.apply(to: $0) ?? $0) }
          case .client: self.clientHash
          }
        if let next {
          // Turned by one bit, so that the order counts, and two that are equal do not make 0.
          hash = hash.map { ($0 << 1 | $0 >> 63) ^ next } ?? next
        }
        if policy.isTerminal, hash != nil { break }
      }
      return hash
    }
  }
}
