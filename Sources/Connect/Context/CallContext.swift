/// Values that travel with a call through its interceptors and are not sent: typed keys, like SwiftUI's
/// environment.
///
/// ```swift
/// enum TenantKey: CallContextKey { static let defaultValue = "" }
///
/// var options = CallOptions()
/// options.context[TenantKey.self] = "acme"
/// ```
public struct CallContext: Sendable {
  /// A list, since there are few values: searching it is faster than hashing.
  @usableFromInline
  var values: [(key: ObjectIdentifier, value: any Sendable)] = []

  // Kept outside of the list: most calls have no other value, and so need no list.
  /// Identifies the request that the call belongs to, in the logs of all services that are involved. If nil, the call
  /// inherits the request id of ``current``.
  ///
  /// ConnectInterceptors' `ContextInterceptor` sends it, and creates one if there is none.
  public var requestID: String?

  /// A context without values.
  public init() {}

  /// The value of a key; the key's ``CallContextKey/defaultValue`` if none was set.
  @inlinable
  public subscript<Key: CallContextKey>(key: Key.Type) -> Key.Value {
    get {
      guard let index = self.index(of: ObjectIdentifier(key)) else { return Key.defaultValue }
      return self.values[index].value as? Key.Value ?? Key.defaultValue
    }
    set {
      if let index = self.index(of: ObjectIdentifier(key)) {
        self.values[index].value = newValue
      } else {
        self.values.append((ObjectIdentifier(key), newValue))
      }
    }
  }

  /// Whether there is a value beside the request id.
  package var hasValues: Bool { !self.values.isEmpty }

  /// Whether there is no value, and no request id.
  var isEmpty: Bool { self.values.isEmpty && self.requestID == nil }

  /// The values of this context, and the values of `outer` whose keys are not set here.
  func merged(over outer: CallContext) -> CallContext {
    var result = self
    if result.requestID == nil { result.requestID = outer.requestID }
    for entry in outer.values where self.index(of: entry.key) == nil { result.values.append(entry) }
    return result
  }

  @usableFromInline
  func index(of key: ObjectIdentifier) -> Int? {
    // By index: a closure would be given a copy of each value.
    for index in self.values.indices where self.values[index].key == key { return index }
    return nil
  }
}

/// A key of ``CallContext``.
public protocol CallContextKey {
  /// The type of the key's value. It may be optional.
  associatedtype Value: Sendable
  /// What a context has for the key when no value was set.
  static var defaultValue: Value { get }
}
