/// The interceptors of one method's calls, in addition to the client's, or instead of them. An array literal adds.
///
/// ```swift
/// config.methodInterceptors = { method in
///   switch method.name {
///   case "Login": .replacing([{ _ in LoginInterceptor() }])
///   case "Upload": [{ _ in ProgressInterceptor() }]
///   default: []
///   }
/// }
/// ```
public enum MethodInterceptors: Sendable {
  /// These interceptors, inside the client's interceptors.
  case adding([InterceptorFactory])
  /// These interceptors instead of the client's interceptors. Those of the process (``ClientSystem``) stay.
  case replacing([InterceptorFactory])
}

extension MethodInterceptors: ExpressibleByArrayLiteral {
  public init(arrayLiteral factories: InterceptorFactory...) {
    self = .adding(factories)
  }
}
