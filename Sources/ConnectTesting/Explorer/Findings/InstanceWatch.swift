internal import Connect

/// The instances of interceptors that a run has made, of those that are objects.
final class InstanceWatch {
  private struct Entry {
    weak var object: AnyObject?
    let identity: ObjectIdentifier
    let name: String
  }

  private var entries: [Entry] = []
  private var isShared = false

  func note(_ interceptor: any Interceptor) {
    guard type(of: interceptor) is AnyClass else { return }
    let object = interceptor as AnyObject
    let identity = ObjectIdentifier(object)
    if self.entries.contains(where: { $0.identity == identity && $0.object != nil }) { self.isShared = true }
    self.entries.append(Entry(object: object, identity: identity, name: "\(type(of: interceptor))"))
  }

  /// The name of an instance that lives on; nil if there is none, or if one instance serves several calls on purpose.
  var survivor: String? {
    self.isShared ? nil : self.entries.first { $0.object != nil }?.name
  }

  /// Of the instances that live on.
  var survivors: Set<ObjectIdentifier> {
    Set(self.entries.compactMap { $0.object.map { ObjectIdentifier($0) } })
  }
}
