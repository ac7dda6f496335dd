import Connect
import ConnectChannels
import ConnectTesting
import Synchronization

/// A watch of a resolver in virtual time, with its reports.
final class WatchRecord: Sendable {
  private struct State {
    var texts: [String] = []
    var watch: (any ResolverWatch)?
  }

  private let executor: VirtualExecutor
  private let state: Mutex<State>

  init(_ resolver: any NameResolver, on executor: VirtualExecutor) {
    self.executor = executor
    self.state = Mutex(State())
    let origin = Origin(scheme: .https, host: "api.example", port: 443)
    let watch = executor.sync {
      resolver.watch(origin, on: executor) { [weak self] report in
        let text: String
        switch report {
        case .success(let update):
          let parts = update.endpoints.map(\.description) + [update.serviceConfig].compactMap(\.self)
          text = parts.isEmpty ? "none" : parts.joined(separator: " ")
        case .failure(let error):
          text = "\(error)"
        }
        self?.state.withLock { $0.texts.append(text) }
      }
    }
    self.state.withLock { $0.watch = watch }
    executor.runUntilIdle()
  }

  /// All reports: the endpoints and the service config, or the error.
  var texts: [String] { self.state.withLock { $0.texts } }

  func resolveAgain() {
    self.executor.sync { self.state.withLock { $0.watch }?.resolveAgain() }
    self.executor.runUntilIdle()
  }

  func cancel() {
    self.executor.sync { self.state.withLock { $0.watch }?.cancel() }
    self.executor.runUntilIdle()
  }

  /// Releases the watch without cancelling it.
  func drop() {
    self.state.withLock { $0.watch = nil }
  }
}
