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
    get { self.values[ObjectIdentifier(key)] as? Key.Value ?? Key.defaultValue }
    set { self.values[ObjectIdentifier(key)] = newValue }
  }
}

/// A key of ``CallContext``.
public protocol CallContextKey {
  associatedtype Value: Sendable
  static var defaultValue: Value { get }
}
