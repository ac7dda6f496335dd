internal import Connect

/// The instances of interceptors that a run has made, of those that are objects.
final class InstanceWatch {
  /// An instance that lives on.
  struct Survivor {
    let identity: ObjectIdentifier
    let name: String
  }

  private struct Entry {
    weak var object: AnyObject?
    let identity: ObjectIdentifier
    let name: String
  }

  private var entries: [Entry] = []
  /// Those that serve several calls, on purpose.
  private var shared: Set<ObjectIdentifier> = []

  /// The same factories, whose instances are to be released with their call.
  func watched(_ factories: [InterceptorFactory]) -> [InterceptorFactory] {
    let here = Confined(self)
    return factories.map { factory in
      { config in
        let interceptor = factory(config)
        here.value.note(interceptor)
        return interceptor
      }
    }
  }

  private func note(_ interceptor: any Interceptor) {
    guard type(of: interceptor) is AnyClass else { return }
    let object = interceptor as AnyObject
    let identity = ObjectIdentifier(object)
    if self.entries.contains(where: { $0.identity == identity && $0.object != nil }) {
      self.shared.insert(identity)
    }
    self.entries.append(Entry(object: object, identity: identity, name: "\(type(of: interceptor))"))
  }

  /// The instances that live on, without those that serve several calls.
  var survivors: [Survivor] {
    self.entries.compactMap { entry in
      guard entry.object != nil, !self.shared.contains(entry.identity) else { return nil }
      return Survivor(identity: entry.identity, name: entry.name)
    }
  }
}
