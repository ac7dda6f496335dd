internal import Connect
internal import Synchronization

/// One watch of a resolver for all channels to an origin. Each channel has its own executor.
///
/// The watch begins with the first channel that looks, on its executor, and ends when none is left. Channels are told
/// under the lock, so that none hears an older answer after a newer one. They only note the answer for later.
final class SharedResolver: NameResolver {
  private typealias Answer = Result<ResolverUpdate, ConnectError>
  private typealias Report = @Sendable (Answer) -> Void

  private struct Source {
    let watch: any ResolverWatch
    let executor: any CallExecutor

    func cancel() { self.executor.run { self.watch.cancel() } }
  }

  private struct State {
    var watchers: [(number: Int, report: Report)] = []
    var lastNumber = 0
    /// Distinguishes answers of this source from those of earlier ones. It is the number of the watcher that began the
    /// source.
    var sourceNumber: Int?
    /// Nil while it begins.
    var source: Source?
    var latest: Answer?
  }

  private let base: any NameResolver
  private let state = Mutex(State())

  init(_ base: any NameResolver) {
    self.base = base
  }

  var mayBringServiceConfig: Bool { self.base.mayBringServiceConfig }

  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    let (number, isFirst) = self.state.withLock { state in
      state.lastNumber += 1
      let number = state.lastNumber
      state.watchers.append((number, report))
      let isFirst = state.sourceNumber == nil
      if isFirst { state.sourceNumber = number } else if let latest = state.latest { report(latest) }
      return (number, isFirst)
    }
    if isFirst { self.begin(number, origin, on: executor) }
    return ClosureWatch(onRequest: { self.resolveAgain() }, onCancel: { self.cancel(number) })
  }

  private func begin(_ number: Int, _ origin: Origin, on executor: any CallExecutor) {
    let watch = self.base.watch(origin, on: executor) { [weak self] in self?.publish($0, by: number) }
    let source = Source(watch: watch, executor: executor)
    let isWanted = self.state.withLock { state in
      guard state.sourceNumber == number else { return false }
      state.source = source
      return true
    }
    // The resolver's own code may have led to the end of the channel.
    if !isWanted { source.cancel() }
  }

  private func publish(_ answer: Answer, by number: Int) {
    self.state.withLock { state in
      guard state.sourceNumber == number else { return }
      // A failure does not take the place of what is known, for channels that come later.
      if case .failure = answer, case .success = state.latest {} else { state.latest = answer }
      for watcher in state.watchers { watcher.report(answer) }
    }
  }

  private func resolveAgain() {
    guard let source = self.state.withLock({ $0.source }) else { return }
    source.executor.run {
      // It may have ended on the way.
      let isCurrent = self.state.withLock { $0.source?.watch === source.watch }
      if isCurrent { source.watch.resolveAgain() }
    }
  }

  private func cancel(_ number: Int) {
    let source = self.state.withLock { state in
      state.watchers.removeAll { $0.number == number }
      guard state.watchers.isEmpty else { return Source?.none }
      state.sourceNumber = nil
      state.latest = nil
      return state.source.take()
    }
    source?.cancel()
  }
}
