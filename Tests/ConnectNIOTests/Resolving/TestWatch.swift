import Connect
import ConnectChannels
import Synchronization
import XCTest

/// A watch of a resolver, with what it has reported.
final class TestWatch: Sendable {
  typealias Report = Result<ResolverUpdate, ConnectError>

  private struct State {
    var reports: [Report] = []
    var watch: (any ResolverWatch)?
  }

  private let executor: any CallExecutor
  private let state = Mutex(State())

  init(
    _ resolver: any NameResolver,
    _ origin: Origin = Origin(scheme: .https, host: "api.test", port: 8080),
    on executor: any CallExecutor
  ) {
    self.executor = executor
    executor.execute {
      let watch = resolver.watch(origin, on: executor) { report in
        self.state.withLock { $0.reports.append(report) }
      }
      self.state.withLock { $0.watch = watch }
    }
  }

  var reports: [Report] { self.state.withLock { $0.reports } }

  func resolveAgain() {
    self.executor.execute { self.state.withLock { $0.watch }?.resolveAgain() }
  }

  func cancel() {
    self.executor.execute { self.state.withLock { $0.watch }?.cancel() }
  }

  /// Waits for one more report than `count`, and returns it.
  func report(after count: Int = 0) async throws -> Report {
    try await eventually("\(count + 1) reports, there are \(self.reports.count)") {
      self.reports.count > count
    }
    return try XCTUnwrap(self.reports.dropFirst(count).first)
  }

  func update(after count: Int = 0) async throws -> ResolverUpdate {
    try await self.report(after: count).get()
  }

  func error(after count: Int = 0) async throws -> ConnectError {
    let report = try await self.report(after: count)
    guard case .failure(let error) = report else {
      throw ConnectError(code: .unknown, message: "no error, but \(report)")
    }
    return error
  }
}

extension ResolverUpdate {
  var addresses: [String] { self.endpoints.map(\.description) }
}

extension ConnectError {
  var resolution: ResolutionError? { self.exception as? ResolutionError }
}
