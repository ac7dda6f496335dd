internal import Connect

/// A tunnel through an HTTP proxy (RFC 9110, section 9.3.6), with Basic credentials (RFC 7617).
package struct HTTPConnectHandshake: ProxyHandshake {
  /// The largest head of a response, in bytes.
  static let maximumHeadSize = 16_384
  /// How many interim responses (1xx) may come before the answer.
  static let maximumInterimResponses = 8

  private let proxy: Proxy
  private let server: HostAndPort
  private var head: [UInt8] = []
  private var interimResponses = 0

  /// - Throws: ``ProxyError`` if the host or the credentials cannot be written into a request.
  package init(proxy: Proxy, host: String, port: Int) throws(ProxyError) {
    self.proxy = proxy
    self.server = try proxy.checkedServer(host: host, port: port)
    try proxy.check(proxy.credentials)
  }

  package func start() -> [UInt8] {
    var request = "CONNECT \(self.server) HTTP/1.1\r\nHost: \(self.server)\r\n"
    if let credentials = self.proxy.credentials {
      let token = Self.base64("\(credentials.user):\(credentials.password)")
      request += "Proxy-Authorization: Basic \(token)\r\n"
    }
    return Array((request + "\r\n").utf8)
  }

  private static func base64(_ text: String) -> String {
    let bytes = Array(text.utf8)
    return String(unsafeUninitializedCapacity: Base64.encodedLength(bytes.count)) { target in
      bytes.withUnsafeBytes {
        Base64.encode($0, to: UnsafeMutableRawBufferPointer(target), alphabet: .standard, isPadded: true)
      }
    }
  }

  package mutating func receive(_ bytes: [UInt8]) throws(ProxyError) -> ProxyHandshakeStep {
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      self.head.append(byte)
      if byte == UInt8(ascii: "\n"), self.isHeadComplete {
        let head = ResponseHead(self.head)
        self.head = []
        guard let head else { throw self.malformed("it is no HTTP response") }
        switch head.status {
        case 100..<200:
          self.interimResponses += 1
          guard self.interimResponses <= Self.maximumInterimResponses, head.status != 101 else {
            throw self.malformed("it is an interim response with status \(head.status)")
          }
        case 200..<300:
          return .done(leftover: Array(rest))
        default:
          throw self.refusal(head)
        }
      } else if self.head.count == 5, self.head != Array("HTTP/".utf8) {
        throw self.malformed("it does not begin with HTTP/")
      } else if self.head.count >= Self.maximumHeadSize {
        throw self.malformed("its head is larger than \(Self.maximumHeadSize) bytes")
      }
    }
    return .wait
  }

  package func closedByProxy() -> ProxyError {
    ProxyError(
      .closed,
      message: "the proxy \(self.proxy) closed the connection before it answered the request for a tunnel to "
        + "\(self.server); check that it is an HTTP proxy, and that it allows CONNECT to this server"
    )
  }

  /// Whether the head ends with an empty line. A line may end without CR (RFC 9112, section 2.2).
  private var isHeadComplete: Bool {
    let end = self.head.suffix(4)
    return end.elementsEqual("\r\n\r\n".utf8) || end.suffix(3).elementsEqual("\n\r\n".utf8)
      || end.suffix(2).elementsEqual("\n\n".utf8)
  }

  // MARK: - Errors

  private func malformed(_ problem: String) -> ProxyError {
    ProxyError(
      .malformedAnswer,
      message: "the answer of the proxy \(self.proxy) cannot be used: \(problem); "
        + "check that it is an HTTP proxy"
    )
  }

  private func refusal(_ head: ResponseHead) -> ProxyError {
    let prefix =
      "the proxy \(self.proxy) answered the request for a tunnel to \(self.server) with status "
      + "\(head.status)\(head.reason): "
    let (reason, advice): (ProxyError.Reason, String) =
      switch head.status {
      case 407 where self.proxy.credentials == nil:
        (
          .authentication,
          "it wants credentials\(head.schemes); write http://USER:PASSWORD@HOST:PORT, only Basic is supported"
        )
      case 407,
        401 where self.proxy.credentials != nil:
        (.authentication, "it does not accept the credentials\(head.schemes); only Basic is supported")
      case 403:
        (.refused, "it does not allow this; check its rules for the server's name and port")
      case 405, 501:
        (.refused, "it does not support CONNECT; it may be a web server, or a reverse proxy")
      case 404, 502, 503:
        (
          .serverUnreachable,
          "it cannot reach the server; check the server's name and port, and the proxy's DNS"
        )
      case 504:
        (.serverUnreachable, "the server did not answer it in time")
      case 300..<400:
        (.refused, "it redirects, which is not followed; it may be a web server or a login page")
      default:
        (.refused, "there is no tunnel; see the proxy's log")
      }
    return ProxyError(reason, message: prefix + advice, status: head.status)
  }
}

extension HTTPConnectHandshake {
  /// The parts of a response's head that matter.
  private struct ResponseHead {
    var status: Int
    /// For messages: the reason phrase in parentheses, behind a space; empty if there is none.
    var reason = ""
    /// For messages: the authentication schemes that the proxy offers.
    var schemes = ""

    /// - Returns: Nil if the bytes do not begin with a status line of HTTP/1.
    init?(_ bytes: [UInt8]) {
      let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      guard let line = lines.first, line.starts(with: "HTTP/1.".utf8), line.count >= 12,
        ASCII.digit(line[7]) != nil, line[8] == UInt8(ascii: " "),
        let status = ASCII.decimal(line[9..<12], maximum: 999), status >= 100,
        line.count == 12 || ASCII.isSpace(line[12])
      else { return nil }
      self.status = status
      let phrase = line.dropFirst(13).prefix(64).filter { (0x20..<0x7f).contains($0) }
      if !phrase.isEmpty { self.reason = " (\(String(decoding: phrase, as: UTF8.self)))" }
      self.schemes = Self.schemes(lines.dropFirst())
    }

    /// The first word of each `Proxy-Authenticate`, without what could forge a message.
    private static func schemes(_ lines: ArraySlice<ArraySlice<UInt8>>) -> String {
      let prefix = "proxy-authenticate:".utf8
      let names = lines.prefix(64).compactMap { line -> String? in
        guard line.count > prefix.count, line.prefix(prefix.count).map(ASCII.lowercased).elementsEqual(prefix)
        else { return nil }
        let value = line.dropFirst(prefix.count).drop(while: ASCII.isSpace)
        let name = value.prefix(32).prefix(while: PercentEncoding.isUnreserved)
        return name.isEmpty ? nil : String(decoding: name, as: UTF8.self)
      }
      return names.isEmpty ? "" : " (it offers \(names.prefix(8).joined(separator: ", ")))"
    }
  }
}
