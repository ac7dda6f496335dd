import Connect

/// The tenant that a call is made for. Callers set it: `options.context[Tenant.self] = "acme"`.
enum Tenant: CallContextKey {
  static let defaultValue: String? = nil
}

/// Tells the server the tenant of a call, and refuses calls without a tenant.
///
/// A call hook sees unary calls and streams alike; it has nothing to wait for, so it returns instead of proceeding.
final class TenantInterceptor: Interceptor {
  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(requestFunction: { request in
      guard let tenant = request.context[Tenant.self] else {
        throw ConnectError(code: .invalidArgument, message: "\(method.path): set the call's Tenant")
      }
      request.headers["x-tenant"] = [tenant]
    })
  }
}
