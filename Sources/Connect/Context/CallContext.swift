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
  /// Few: looking through them takes less time than hashing.
  @usableFromInline
  var values: [(key: ObjectIdentifier, value: any Sendable)] = []

  // Not under a key, since most calls would need a list of values for it alone.
  /// Names the request that the call belongs to, in the logs of all services that it passes. With nil a call inherits that
  /// of ``current``.
  ///
  /// ConnectInterceptors' `ContextInterceptor` sends it, and makes one where there is none.
  public var requestID: String?

  public init() {}

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

  /// Whether there is no value, and no request id.
  var isEmpty: Bool { self.values.isEmpty && self.requestID == nil }

  /// The values of this context, and of `outer` those that were not set here.
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
  associatedtype Value: Sendable
  static var defaultValue: Value { get }
}
