internal import Connect

/// Routes the calls of one method. What does not depend on the call is made once, so that most calls allocate nothing here.
struct MethodRouter: CallRouter {
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
  init(refusing error: ConnectError) {
    self.init([], numbers: CallNumbers(seed: 0), noRoute: error.beforeRoutes)
  }

  func rules(forHeaders headers: Headers) -> CallRules {
    var random = self.numbers.next()
    for candidate in self.candidates where candidate.matches(headers, &random) {
      return candidate.rules(headers, &random)
    }
    return .refused(self.noRoute)
  }
}

extension MethodRouter {
  /// A route whose path matches the method's.
  struct Candidate: Sendable {
    /// A cluster, up to a number of the sum of weights.
    private struct Share: Sendable {
      let end: UInt64
      /// Or why calls of this share cannot be made.
      let destination: Result<CallDestination, ConnectError>
    }

    private let conditions: [HeaderCondition]
    private let fraction: Double?
    private let shares: [Share]
    private let hashPolicies: [RouteHashPolicy]
    private let clientHash: UInt64
    private let methodRules: MethodRules

    /// - Parameters:
    ///   - destinations: Of the route's clusters, in their order.
    ///   - clientHash: The hash of this client.
    init(
      _ route: Route,
      _ destinations: [Result<CallDestination, ConnectError>],
      _ rules: MethodRules,
      clientHash: UInt64
    ) {
      self.conditions = route.match.headers.map(HeaderCondition.init)
      self.fraction = route.match.fraction
      self.methodRules = rules
      self.clientHash = clientHash
      self.hashPolicies = route.hashPolicies.map { policy in
        guard case .header(let name) = policy.kind else { return policy }
        return .header(name.lowercased(), isTerminal: policy.isTerminal)
      }
      var end: UInt64 = 0
      var shares: [Share] = []
      for (cluster, destination) in zip(route.clusters, destinations) where cluster.weight > 0 {
        end += UInt64(cluster.weight)
        shares.append(Share(end: end, destination: destination))
      }
      self.shares = shares
    }

    /// - Parameter random: The call's random numbers.
    func matches(_ headers: Headers, _ random: inout SeededRandom) -> Bool {
      if self.shares.isEmpty { return false }
      for condition in self.conditions where !condition.holds(for: headers) { return false }
      guard let fraction = self.fraction else { return true }
      return random.fraction() < fraction
    }

    /// What holds for a call that the route takes.
    func rules(_ headers: Headers, _ random: inout SeededRandom) -> CallRules {
      switch self.shares[self.choose(&random)].destination {
      case .failure(let error):
        return .refused(error)
      case .success(let destination):
        guard let cluster = destination.cluster, let hash = self.hash(headers) else {
          return .route(self.methodRules, destination)
        }
        return .route(self.methodRules, CallDestination(cluster: cluster, hash: hash))
      }
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
      for policy in self.hashPolicies {
        let next: UInt64? =
          switch policy.kind {
          case .header(let name): headers.value(ofLowercased: name).map { XXH64.hash($0) }
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
