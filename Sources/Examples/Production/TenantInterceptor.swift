import Connect

/// For whom a call is made. Callers set it: `options.context[Tenant.self] = "acme"`.
enum Tenant: CallContextKey {
  static let defaultValue: String? = nil
}

/// Tells the server for whom a call is made, and refuses calls that do not say it.
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
