internal import Connect
internal import ConnectChannels
internal import Logging
internal import NIOCore
internal import NIOPosix

/// One lookup of a ``DNSResolver``. It reads the files of the machine. Then it asks for addresses or services, and for a
/// service config at the same time.
///
/// `@unchecked Sendable`: what changes is touched on the executor alone.
final class DNSLookup: @unchecked Sendable {
  struct Environment: Sendable {
    var configuration: DNSResolver.Configuration
    var executor: any CallExecutor
    /// For the sockets.
    var eventLoop: any EventLoop
    var logger: Logger
    var alternatives: SharedAlternatives?
  }

  private let service: String?
  private let origin: Origin
  private let environment: Environment
  private let configs: ServiceConfigMemory
  private let report: @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  private var runs: [StubResolutionRun] = []
  private var isCancelled = false
  private var found: StubResolutionRun.Outcome?
  private var texts: StubResolutionRun.Outcome?
  private var unfinishedCount = 0
  /// For HTTPS records.
  private var bindingsRun: StubResolutionRun?

  /// - Parameters:
  ///   - service: The name with SRV records; nil for the addresses of the origin's host.
  ///   - report: Called once, on the executor, unless the lookup is cancelled.
  init(
    service: String?,
    _ origin: Origin,
    _ environment: Environment,
    _ configs: ServiceConfigMemory,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) {
    self.service = service
    self.origin = origin
    self.environment = environment
    self.configs = configs
    self.report = report
  }

  /// To be called on the executor, as ``cancel()``.
  func start() {
    NIOThreadPool.singleton.submit { _ in
      let files = ResolverFiles(self.environment.configuration)
      self.environment.executor.execute { self.begin(files) }
    }
  }

  func cancel() {
    self.isCancelled = true
    for run in self.runs { run.cancel() }
    self.runs = []
    self.bindingsRun.take()?.cancel()
  }

  private func begin(_ files: ResolverFiles) {
    guard !self.isCancelled else { return }
    let question: StubResolution.Question =
      if let service = self.service { .services(of: service) } else { .addresses(of: self.origin.host) }
    var questions = [question]
    if self.environment.configuration.readsServiceConfig, Endpoint(of: self.origin) == nil {
      questions.append(.texts(of: ServiceConfigChoices.namePrefix + self.origin.host))
    }
    self.unfinishedCount = questions.count
    self.runs = questions.map { question in
      let resolution = StubResolution(question, configuration: files.nameServers, hosts: files.hosts)
      return StubResolutionRun(
        resolution,
        on: self.environment.executor,
        sockets: self.environment.eventLoop
      )
    }
    self.findBindings(files)
    let limit = max(self.environment.configuration.timeout.clamped, .zero)
    for (question, run) in zip(questions, self.runs) {
      run.start(within: limit) { outcome in
        if case .texts = question { self.texts = outcome } else { self.found = outcome }
        self.unfinishedCount -= 1
        if self.unfinishedCount == 0 { self.finish(hostname: files.hostname) }
      }
    }
  }

  private func findBindings(_ files: ResolverFiles) {
    // The servers of a service may be others than those in the host's records.
    guard self.service == nil,
      let search = ServiceBindingSearch(self.origin, hosts: files.hosts, self.environment.alternatives)
    else { return }
    let resolution = StubResolution(search.question, configuration: files.nameServers, hosts: files.hosts)
    let executor = self.environment.executor
    let run = StubResolutionRun(resolution, on: executor, sockets: self.environment.eventLoop)
    self.bindingsRun = run
    run.start(within: ServiceBindingSearch.timeout) { [weak self] outcome in
      self?.bindingsRun = nil
      search.finish(outcome, now: executor.now)
    }
  }

  private func finish(hostname: String) {
    self.runs = []
    guard let found = self.found else { return }
    let answer: Result<ResolverUpdate, ConnectError>
    switch found {
    case .failure(let error):
      answer = error.report(for: self.origin)
    case .success(let found):
      let endpoints = found.endpoints(port: self.origin.port)
      answer = .success(ResolverUpdate(endpoints: endpoints, timeToLive: found.timeToLive))
    }
    self.report(answer.map { self.addingServiceConfig(to: $0, hostname: hostname) })
  }

  private func addingServiceConfig(to update: ResolverUpdate, hostname: String) -> ResolverUpdate {
    guard let texts = self.texts else { return update }
    var update = update
    update.serviceConfig = self.configs.update(texts, hostname, self.origin, self.environment.logger)
    let timeToLive = try? texts.get().timeToLive
    update.timeToLive = [update.timeToLive, timeToLive].compactMap(\.self).min()
    return update
  }
}
