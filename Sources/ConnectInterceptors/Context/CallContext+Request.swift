public import Connect

private enum RequestIDKey: CallContextKey {
  static let defaultValue: String? = nil
}

private enum BaggageKey: CallContextKey {
  static let defaultValue = Baggage()
}

extension CallContext {
  /// Names the request that the call belongs to, in the logs of all services that it passes. ``ContextInterceptor``
  /// sends it, and makes one where there is none.
  public var requestID: String? {
    get { self[RequestIDKey.self] }
    set { self[RequestIDKey.self] = newValue }
  }

  /// What the request carries from service to service. ``ContextInterceptor`` sends it.
  public var baggage: Baggage {
    get { self[BaggageKey.self] }
    set { self[BaggageKey.self] = newValue }
  }
}
