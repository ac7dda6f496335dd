/// A tunnel through a SOCKS5 proxy (RFC 1928), without authentication or with user and password (RFC 1929).
///
///     greeting ──► [credentials ──►] request ──► done
package struct SOCKS5Handshake: ProxyHandshake {
  private enum State {
    case greeting, credentials, request
  }

  private static let version: UInt8 = 5
  private static let noAuthentication: UInt8 = 0
  private static let userAndPassword: UInt8 = 2

  private let proxy: Proxy
  private let server: HostAndPort
  private var state = State.greeting
  /// At most one incomplete message: 262 bytes.
  private var buffer: [UInt8] = []

  /// - Throws: ``ProxyError`` if the host's name or the credentials are longer than 255 bytes.
  package init(proxy: Proxy, host: String, port: Int) throws(ProxyError) {
    self.proxy = proxy
    self.server = try proxy.checkedServer(host: host, port: port)
    try proxy.check(proxy.credentials)
    guard self.server.host.utf8.count <= 255 else {
      throw ProxyError(
        .invalidURL,
        message: "the name \"\(host)\" is longer than 255 bytes, the limit of SOCKS5"
      )
    }
  }

  package func start() -> [UInt8] {
    self.proxy.credentials == nil
      ? [Self.version, 1, Self.noAuthentication]
      : [Self.version, 2, Self.noAuthentication, Self.userAndPassword]
  }

  package mutating func receive(_ bytes: [UInt8]) throws(ProxyError) -> ProxyHandshakeStep {
    var rest = bytes[...]
    var output: [UInt8] = []
    while let byte = rest.popFirst() {
      self.buffer.append(byte)
      if self.state != .credentials, self.buffer[0] != Self.version {
        throw self.malformed("it speaks version \(self.buffer[0])")
      }
      switch self.state {
      case .greeting:
        guard self.buffer.count == 2 else { continue }
        output += try self.methodChosen(self.buffer[1])
      case .credentials:
        guard self.buffer.count == 2 else { continue }
        guard self.buffer[1] == 0 else {
          throw self.error(.authentication, "it does not accept the credentials", status: nil)
        }
        output += self.request()
      case .request:
        if self.buffer.count == 2, self.buffer[1] != 0 { throw self.refusal(self.buffer[1]) }
        guard let size = try self.replySize(), self.buffer.count == size else { continue }
        return .done(leftover: Array(rest))
      }
      self.buffer = []
      guard rest.isEmpty else { throw self.malformed("it sent a reply before the request") }
    }
    return output.isEmpty ? .wait : .send(output)
  }

  package func closedByProxy() -> ProxyError {
    let advice =
      switch self.state {
      case .greeting: "check that it is a SOCKS5 proxy"
      case .credentials: "it may not accept the credentials"
      case .request: "check that it allows connections to this server"
      }
    return self.error(.closed, "it closed the connection before it answered; \(advice)", status: nil)
  }

  // MARK: - Messages

  private mutating func methodChosen(_ method: UInt8) throws(ProxyError) -> [UInt8] {
    switch (method, self.proxy.credentials) {
    case (Self.noAuthentication, _):
      return self.request()
    case (Self.userAndPassword, let credentials?):
      self.state = .credentials
      let (user, password) = (Array(credentials.user.utf8), Array(credentials.password.utf8))
      return [1, UInt8(user.count)] + user + [UInt8(password.count)] + password
    case (0xff, nil):
      throw self.error(
        .authentication,
        "it wants credentials; write socks5://USER:PASSWORD@HOST:PORT",
        status: nil
      )
    case (0xff, _):
      throw self.error(.authentication, "it takes no user and password (RFC 1929)", status: nil)
    default:
      throw self.malformed("it chose the authentication method \(method), which was not offered")
    }
  }

  private mutating func request() -> [UInt8] {
    self.state = .request
    let connect: UInt8 = 1
    var bytes: [UInt8] = [Self.version, connect, 0]
    if let address = IPAddress(self.server.host), address.zone == nil {
      bytes.append(address.family == .v4 ? 1 : 4)
      bytes += address.bytes
    } else {
      bytes.append(3)
      bytes.append(UInt8(self.server.host.utf8.count))
      bytes += self.server.host.utf8
    }
    return bytes + [UInt8(self.server.port >> 8), UInt8(self.server.port & 0xff)]
  }

  /// How long the reply is: the address in it has one of three forms. Nil as long as that is not known.
  private func replySize() throws(ProxyError) -> Int? {
    guard self.buffer.count >= 4 else { return nil }
    switch self.buffer[3] {
    case 1: return 4 + 4 + 2
    case 4: return 4 + 16 + 2
    case 3: return self.buffer.count > 4 ? 4 + 1 + Int(self.buffer[4]) + 2 : nil
    default: throw self.malformed("its reply has the address type \(self.buffer[3])")
    }
  }

  // MARK: - Errors

  private func error(_ reason: ProxyError.Reason, _ problem: String, status: UInt8?) -> ProxyError {
    ProxyError(
      reason,
      message: "the proxy \(self.proxy) made no tunnel to \(self.server): \(problem)",
      status: status.map(Int.init)
    )
  }

  private func malformed(_ problem: String) -> ProxyError {
    self.error(.malformedAnswer, "\(problem); check that it is a SOCKS5 proxy", status: nil)
  }

  /// RFC 1928, section 6.
  private func refusal(_ code: UInt8) -> ProxyError {
    switch code {
    case 1: self.error(.refused, "it reports a general failure; see its log", status: code)
    case 2:
      self.error(.refused, "its rules do not allow this; check them for the server and port", status: code)
    case 3: self.error(.serverUnreachable, "it cannot reach the server's network", status: code)
    case 4:
      self.error(
        .serverUnreachable,
        "it cannot reach the host; check the server's name and the proxy's DNS",
        status: code
      )
    case 5: self.error(.serverUnreachable, "the server refused the proxy's connection", status: code)
    case 6: self.error(.serverUnreachable, "the connection took too many hops (TTL expired)", status: code)
    case 7: self.error(.refused, "it does not support the command CONNECT", status: code)
    case 8: self.error(.refused, "it does not support this type of address", status: code)
    default: self.error(.refused, "it reports the unknown failure \(code)", status: code)
    }
  }
}
