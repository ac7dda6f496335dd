import Connect

/// A transport whose endpoints know rules for calls, around one whose endpoints do not.
final class RuledTransport: HTTPClientInterface {
  private final class Endpoint: RuledEndpoint {
    private let base: any HTTPEndpoint
    let serviceRules: ServiceRules

    init(_ base: any HTTPEndpoint, _ rules: ServiceRules) {
      self.base = base
      self.serviceRules = rules
    }

    var executor: any CallExecutor { self.base.executor }

    func callsWaitForRules(_ count: Int) -> ConnectError? { nil }

    func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
      self.base.startStream(request, handler: handler)
    }
  }

  private let base: any HTTPClientInterface
  private let serviceRules = ServiceRules()

  init(_ base: any HTTPClientInterface, _ rules: MethodRules) {
    self.base = base
    self.serviceRules.update { _ in rules }
  }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    Endpoint(
      try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2),
      self.serviceRules
    )
  }
}
