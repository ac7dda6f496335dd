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
    /// The clusters that each watcher has in use. Empty ones are left out.
    var kept: [Int: Set<String>] = [:]

    var keptByAll: Set<String> { self.kept.values.reduce(into: []) { $0.formUnion($1) } }
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
    return ClosureWatch(
      onRequest: { self.resolveAgain() },
      onKeep: { self.keep($0, for: number) },
      onCancel: { self.cancel(number) }
    )
  }

  private func begin(_ number: Int, _ origin: Origin, on executor: any CallExecutor) {
    let watch = self.base.watch(origin, on: executor) { [weak self] in self?.publish($0, by: number) }
    let source = Source(watch: watch, executor: executor)
    let (isWanted, hasKept) = self.state.withLock { state in
      guard state.sourceNumber == number else { return (false, false) }
      state.source = source
      return (true, !state.kept.isEmpty)
    }
    // The resolver's own code may have led to the end of the channel.
    if !isWanted { source.cancel() }
    if hasKept { self.tellKept() }
  }

  private func publish(_ answer: Answer, by number: Int) {
    self.state.withLock { state in
      guard state.sourceNumber == number else { return }
      // A failure does not take the place of what is known, for channels that come later.
      if case .failure = answer, case .success = state.latest {} else { state.latest = answer }
      for watcher in state.watchers { watcher.report(answer) }
    }
  }

  private func resolveAgain() { self.withSource { source, _ in source.resolveAgain() } }

  private func keep(_ names: Set<String>, for number: Int) {
    self.state.withLock { state in
      guard state.watchers.contains(where: { $0.number == number }) else { return }
      state.kept[number] = names.isEmpty ? nil : names
    }
    self.tellKept()
  }

  /// Reads what is kept where it is told, so that nothing older is told last.
  private func tellKept() { self.withSource { source, state in source.keepClusters(state.keptByAll) } }

  private func withSource(_ body: @escaping @Sendable (any ResolverWatch, State) -> Void) {
    guard let source = self.state.withLock({ $0.source }) else { return }
    source.executor.run {
      let state = self.state.withLock { $0 }
      // It may have ended on the way.
      if state.source?.watch === source.watch { body(source.watch, state) }
    }
  }

  private func cancel(_ number: Int) {
    let (source, hasKept) = self.state.withLock { state in
      state.watchers.removeAll { $0.number == number }
      let hasKept = state.kept.removeValue(forKey: number) != nil
      guard state.watchers.isEmpty else { return (Source?.none, hasKept) }
      state.sourceNumber = nil
      state.latest = nil
      return (state.source.take(), false)
    }
    source?.cancel()
    if hasKept { self.tellKept() }
  }
}
