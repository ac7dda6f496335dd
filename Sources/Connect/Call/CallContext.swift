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
  private var values: [ObjectIdentifier: any Sendable] = [:]

  public init() {}

  public subscript<Key: CallContextKey>(key: Key.Type) -> Key.Value {
    get {
      guard let value = self.values[ObjectIdentifier(key)] else { return Key.defaultValue }
      return value as? Key.Value ?? Key.defaultValue
    }
    set { self.values[ObjectIdentifier(key)] = newValue }
  }

  /// Whether no value was ever set.
  var isEmpty: Bool { self.values.isEmpty }

  /// The values of this context, and of `outer` those that were not set here.
  func merged(over outer: CallContext) -> CallContext {
    var result = self
    result.values.merge(outer.values) { own, _ in own }
    return result
  }
}

/// A key of ``CallContext``.
public protocol CallContextKey {
  associatedtype Value: Sendable
  static var defaultValue: Value { get }
}
