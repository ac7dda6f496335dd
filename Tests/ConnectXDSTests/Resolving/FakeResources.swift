import Connect
import ConnectTesting

@testable import ConnectXDS

/// Resources that a test sets, for its watches. Confined to the executor: `set` hops there.
final class FakeResources: ResourceSource, @unchecked Sendable {
  struct Key: Hashable {
    var type: ResourceType
    var name: String
  }

  private final class Watch: ResourceWatch {
    let onCancel: () -> Void

    init(_ onCancel: @escaping () -> Void) {
      self.onCancel = onCancel
    }

    func cancel() { self.onCancel() }
  }

  let executor = VirtualExecutor()
  private var states: [Key: ResourceState] = [:]
  private var reports: [Key: [Int: @Sendable (ResourceState) -> Void]] = [:]
  private var count = 0
  /// The names of watches that were cancelled, in order. To be read on the executor, or while it is idle.
  private(set) var cancelled: [String] = []

  func watch(
    _ type: ResourceType,
    _ name: String,
    _ report: @escaping @Sendable (ResourceState) -> Void
  ) -> any ResourceWatch {
    precondition(self.executor.isCurrent)
    let key = Key(type: type, name: name)
    self.count += 1
    let number = self.count
    self.reports[key, default: [:]][number] = report
    self.executor.execute {
      if let state = self.states[key] { self.reports[key]?[number]?(state) }
    }
    return Watch {
      self.cancelled.append(name)
      self.reports[key]?[number] = nil
      if self.reports[key]?.isEmpty == true { self.reports[key] = nil }
    }
  }

  /// Reports resources together, as those of one response.
  func set(_ resources: [(String, Resource)]) {
    self.executor.sync {
      for (name, resource) in resources {
        self.report(.present(resource), Key(type: resource.type, name: name))
      }
    }
    self.executor.runUntilIdle()
  }

  func set(_ name: String, _ resource: Resource) { self.set([(name, resource)]) }

  func remove(_ type: ResourceType, _ name: String) {
    let error = ConnectError(code: .notFound, message: "\(name) does not exist")
    self.executor.sync { self.report(.missing(error), Key(type: type, name: name)) }
    self.executor.runUntilIdle()
  }

  private func report(_ state: ResourceState, _ key: Key) {
    self.states[key] = state
    for (_, report) in (self.reports[key] ?? [:]).sorted(by: { $0.key < $1.key }) { report(state) }
  }

  /// What is watched, as `type name`, sorted.
  var watched: [String] {
    self.executor.sync { self.reports.keys.map { "\($0.type) \($0.name)" }.sorted() }
  }
}

extension Resource {
  var type: ResourceType {
    switch self {
    case .listener: .listener
    case .routeConfiguration: .routeConfiguration
    case .cluster: .cluster
    case .endpoints: .endpoints
    }
  }
}
