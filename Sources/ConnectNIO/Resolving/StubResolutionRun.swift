internal import Connect
internal import ConnectChannels
internal import NIOCore

/// Runs one ``StubResolution``: sends its queries and gives it answers and time.
///
/// `@unchecked Sendable`: what changes is touched on `executor` alone.
final class StubResolutionRun: @unchecked Sendable {
  typealias Outcome = Result<StubResolution.Answer, ResolutionError>

  private struct OpenQuery {
    var socket: DNSQuerySocket
    var timer: any CallTimer
  }

  private let executor: any CallExecutor
  private let eventLoop: any EventLoop
  private var resolution: StubResolution
  private var queries: [StubResolution.QueryID: OpenQuery] = [:]
  private var expiry: (any CallTimer)?
  private var completion: ((Outcome) -> Void)?
  /// Not seeded: anyone who can guess a query's number can forge its answer.
  private var random = SystemRandomNumberGenerator()

  /// - Parameter eventLoop: For the sockets.
  init(_ resolution: StubResolution, on executor: any CallExecutor, sockets eventLoop: any EventLoop) {
    self.resolution = resolution
    self.executor = executor
    self.eventLoop = eventLoop
  }

  /// - Parameters:
  ///   - limit: After this time the run ends with what has been found so far.
  ///   - completion: Called once, on the executor, unless the run is cancelled.
  func start(within limit: Duration, _ completion: @escaping (Outcome) -> Void) {
    self.completion = completion
    self.expiry = self.executor.schedule(after: limit) { self.run(self.resolution.expire()) }
    self.run(self.resolution.start(using: &self.random))
  }

  func cancel() {
    self.run(self.resolution.cancel())
    self.expiry.take()?.cancel()
    self.completion = nil
  }

  private func run(_ actions: [StubResolution.Action]) {
    for action in actions {
      switch action {
      case .send(let query):
        self.send(query)
      case .stop(let id):
        let query = self.queries.removeValue(forKey: id)
        query?.socket.close()
        query?.timer.cancel()
      case .finish(let outcome):
        self.expiry.take()?.cancel()
        self.completion.take()?(outcome)
      }
    }
  }

  private func send(_ query: StubResolution.Query) {
    // Always later, so that no event comes while actions are run.
    let socket = DNSQuerySocket(query, on: self.eventLoop) { event in
      self.executor.execute { self.handle(event, of: query.id) }
    }
    let timer = self.executor.schedule(after: query.timeout) {
      self.run(self.resolution.timedOut(query.id, using: &self.random))
    }
    self.queries[query.id] = OpenQuery(socket: socket, timer: timer)
    socket.open()
  }

  private func handle(_ event: DNSQuerySocket.Event, of id: StubResolution.QueryID) {
    switch event {
    case .received(let bytes):
      self.run(self.resolution.received(bytes, for: id, using: &self.random))
      self.queries[id]?.socket.readNext()
    case .failed(let problem):
      self.run(self.resolution.failed(id, problem, using: &self.random))
    }
  }
}
