public import Connect

private enum BaggageKey: CallContextKey {
  static let defaultValue = Baggage()
}

extension CallContext {
  /// What the request carries from service to service. ``ContextInterceptor`` sends it.
  public var baggage: Baggage {
    get { self[BaggageKey.self] }
    set { self[BaggageKey.self] = newValue }
  }
}
