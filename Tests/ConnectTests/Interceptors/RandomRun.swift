import Connect
import ConnectTesting
import NIOCore

/// A client with a random chain, a scripted server, and a record of what they see.
final class RandomRun: Sendable {
  /// Lives as long as something that a call should let go of.
  private final class Token: Sendable {}

  private enum TokenKey: CallContextKey {
    static let defaultValue: Token? = nil
  }

  let chain: RandomChain
  let transport: ScriptedTransport
  let client: ProtocolClient
  let events: Events
  let ends: RandomEnds
  /// The numbers of the attempts of which metrics have come.
  let attempts: Box<[Int]>
  private let lives: Lives

  init(_ chain: RandomChain, executor: VirtualExecutor) {
    let events = Events()
    let ends = RandomEnds()
    let attempts = Box<[Int]>([])
    let lives = Lives()
    let count = Box(0)
    let transport = ScriptedTransport(
      { stream in
        let index = count.increment() - 1
        events.add("server \(index)")
        let latency = chain.server.reply(to: index).latency
        guard latency > .zero else { return chain.server.serve(stream, index) }
        _ = executor.schedule(after: latency) { if !stream.isOver { chain.server.serve(stream, index) } }
      },
      executor: executor
    )
    let measuring = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
        attempts.value = attempts.value + [metrics.attempt]
        proceed(metrics)
      }
    }
    self.chain = chain
    self.events = events
    self.ends = ends
    self.attempts = attempts
    self.lives = lives
    self.transport = transport
    self.client = ProtocolClient.scripted(
      transport,
      interceptors: chain.interceptors.map { $0.factory(events, ends, executor, lives) } + [measuring],
      timeout: chain.end.flatMap { $0.isDeadline ? $0.time : nil }
    ) {
      $0.retries.maximumRetries = chain.maximumRetries
      let policy = chain.hedging
      $0.hedging = { _ in policy }
    }
  }

  private var executor: VirtualExecutor { self.transport.virtualExecutor }

  /// Makes a call and lets time pass until nothing happens any more.
  ///
  /// - Returns: The outcomes that the caller got.
  func call(asTask: Bool) -> [RandomOutcome] {
    let outcomes = Box<[RandomOutcome]>([])
    do {
      let cancel = self.start(asTask: asTask) { outcomes.value = outcomes.value + [$0] }
      if let end = self.chain.end, !end.isDeadline { _ = self.executor.schedule(after: end.time, cancel) }
    }
    self.executor.runUntilIdle()
    while self.executor.advanceToNext() {}
    return outcomes.value
  }

  /// - Returns: What cancels the call.
  private func start(
    asTask: Bool,
    _ completion: @escaping @Sendable (RandomOutcome) -> Void
  ) -> @Sendable () -> Void {
    let token = Token()
    let kept = Token()
    self.lives.add(token, "the call's context")
    self.lives.add(kept, "the completion")
    var options = CallOptions()
    options.context[TokenKey.self] = token
    guard asTask else {
      let handle = self.client.unary(.unary, "x", options: options) { response in
        withExtendedLifetime(kept) { completion(response.outcome) }
      }
      return { handle.cancel() }
    }
    let task = Task(executorPreference: self.executor) { [client, options] in
      let response = await client.unary(.unary, "x", options: options)
      withExtendedLifetime(kept) { completion(response.outcome) }
    }
    return { task.cancel() }
  }

  /// What the call has not let go of. The streams of the transport are forgotten for that.
  func findLiving() -> [String] {
    self.transport.forgetStreams()
    return self.lives.names
  }
}
