/// Which servers are reached through which proxy.
///
///     let settings = try ProxySettings.fromEnvironment(ProcessInfo.processInfo.environment)
///     let proxy = settings.proxy(host: "api.example.com", port: 443)
public struct ProxySettings: Hashable, Sendable {
  /// The proxy for all servers but the ``exceptions``; nil if no server is reached through a proxy.
  public var proxy: Proxy?
  /// The servers that are reached without the proxy.
  public var exceptions: NoProxyList

  /// Settings that a program gives.
  public init(proxy: Proxy?, exceptions: NoProxyList = NoProxyList()) {
    self.proxy = proxy
    self.exceptions = exceptions
  }

  /// The proxy for a server; nil for a direct connection. Unix domain sockets never have a proxy: do not ask.
  public func proxy(host: String, port: Int) -> Proxy? {
    self.exceptions.contains(host: host, port: port) ? nil : self.proxy
  }

  /// The settings of the environment, as other gRPC clients read them.
  ///
  /// The first of `grpc_proxy`, `https_proxy` and `http_proxy` that is set counts, each in lower case before
  /// capitals. One that is set and empty means no proxy. Exceptions come from `no_grpc_proxy`, else from
  /// `no_proxy`.
  ///
  /// `HTTP_PROXY` in capitals is ignored in a CGI program (`REQUEST_METHOD` is set): there it holds a header of
  /// the request (<https://httpoxy.org>).
  ///
  /// - Throws: ``ProxyError`` if a value is no URL of a proxy; it names the variable.
  public static func fromEnvironment(_ environment: [String: String]) throws(ProxyError) -> ProxySettings {
    try self.fromEnvironment { environment[$0] }
  }

  /// The same with a function that gives the value of a variable; nil if it is not set.
  package static func fromEnvironment(_ value: (String) -> String?) throws(ProxyError) -> ProxySettings {
    let exceptions = self.first(["no_grpc_proxy", "no_proxy"], value)?.value ?? ""
    guard let (name, url) = self.first(["grpc_proxy", "https_proxy", "http_proxy"], value),
      !ASCII.trimmed(url).isEmpty
    else { return ProxySettings(proxy: nil) }
    do {
      return ProxySettings(proxy: try Proxy(url), exceptions: NoProxyList(exceptions))
    } catch {
      var error = error
      error.message = "the environment variable \(name): \(error.message)"
      throw error
    }
  }

  private static func first(
    _ names: [String],
    _ value: (String) -> String?
  ) -> (name: String, value: String)? {
    let isCGI = value("REQUEST_METHOD") != nil
    for name in names {
      for variable in [name, name.uppercased()] where !(isCGI && variable == "HTTP_PROXY") {
        if let value = value(variable) { return (variable, value) }
      }
    }
    return nil
  }
}
