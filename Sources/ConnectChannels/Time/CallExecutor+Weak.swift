package import Connect

/// A weak reference as a value.
package struct Weak<Object: AnyObject> {
  package private(set) weak var object: Object?

  package init(_ object: Object) {
    self.object = object
  }
}

extension Weak: Sendable where Object: Sendable {}

extension CallExecutor {
  /// Runs `work` after a time, unless `object`, which is confined to the executor, is gone by then.
  package func schedule<Object: AnyObject>(
    after delay: Duration,
    with object: Object,
    _ work: @escaping @Sendable (Object) -> Void
  ) -> any CallTimer {
    let object = Confined(Weak(object), to: self)
    return self.schedule(after: max(delay, .zero)) {
      if let object = object.value.object { work(object) }
    }
  }

  /// Runs `work` soon, unless `object`, which is confined to the executor, is gone by then.
  package func execute<Object: AnyObject>(with object: Object, _ work: @escaping @Sendable (Object) -> Void) {
    let object = Confined(Weak(object), to: self)
    self.execute {
      if let object = object.value.object { work(object) }
    }
  }

  /// Runs `work`, which is confined to the executor, soon.
  package func later(_ work: @escaping () -> Void) {
    let work = Confined(work, to: self)
    self.execute { work.value() }
  }
}
