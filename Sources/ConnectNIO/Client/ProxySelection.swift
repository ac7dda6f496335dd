internal import Connect
public import ConnectChannels

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

extension NIOHTTPClient.Configuration {
  /// Which proxy connections go through.
  ///
  /// A proxy makes a tunnel to the server for each connection, with `http://` and `https://` origins alike. TLS is
  /// spoken with the server, through the tunnel. Many HTTP proxies allow tunnels to port 443 alone unless their rules
  /// say otherwise. The proxy resolves the server's name: the resolver of ``NIOHTTPClient/Configuration/channel`` is
  /// not asked. `unix:` origins never have a proxy.
  ///
  /// The settings are read once, when the client is made. If they cannot be used, calls fail with `failed_precondition`
  /// and a message that says what to change.
  public enum ProxySelection: Sendable, Hashable {
    /// Connections go to the servers themselves, whatever the environment says.
    case off
    /// The variables of the environment decide, in the order of other gRPC clients.
    ///
    /// - The proxy is in `grpc_proxy`, else `https_proxy`, else `http_proxy`, for all origins alike. One that is set and
    ///   empty means no proxy. `HTTP_PROXY` in capitals does not count in a CGI program.
    /// - The servers that need none are in `no_grpc_proxy`, else `no_proxy`: see `NoProxyList`.
    ///
    /// Each name counts in lower case before capitals. A value is `http://USER:PASSWORD@HOST:PORT` or
    /// `socks5://USER:PASSWORD@HOST:PORT`; user and password may be left out, and have escapes (`%40` for `@`).
    case environment
    /// This proxy, except for the servers of `exceptions`.
    ///
    /// ```swift
    /// import ConnectChannels
    ///
    /// configuration.proxy = .proxy(try Proxy("http://proxy.example.com:3128"))
    /// ```
    case proxy(Proxy, exceptions: NoProxyList = NoProxyList())
  }
}

extension NIOHTTPClient.Configuration.ProxySelection {
  /// What is selected.
  ///
  /// - Parameter variable: The value of a variable of the environment; nil if it is not set.
  /// - Returns: An error with `failed_precondition` if the settings cannot be used.
  func settings(variable: (String) -> String? = Self.variable) -> Result<ProxySettings, ConnectError> {
    do throws(ProxyError) {
      switch self {
      case .off:
        return .success(ProxySettings(proxy: nil))
      case .environment:
        return .success(try ProxySettings.fromEnvironment(variable))
      case .proxy(let proxy, let exceptions):
        try proxy.check()
        return .success(ProxySettings(proxy: proxy, exceptions: exceptions))
      }
    } catch {
      return .failure(
        ConnectError(code: .failedPrecondition, message: error.message, exception: error).asFinal
      )
    }
  }

  private static func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}
