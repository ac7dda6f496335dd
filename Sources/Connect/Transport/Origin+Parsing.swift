extension Origin {
  /// The longest path of a Unix domain socket, in bytes: Linux's `sun_path` without its terminator.
  private static let maximumSocketPathLength = 107

  private static let schemes = "http://, https://, unix:, unix-abstract: or vsock:"

  /// An origin from its text: `http://host:port`, `https://host:port`, `unix:/path/to/socket`, `unix-abstract:NAME` or
  /// `vsock:CID:PORT`. A base path is left out.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument`, whose message says what is wrong with the text.
  public init(_ text: String) throws(ConnectError) {
    self = try Self.parse(host: text).origin
  }

  /// The origin in a client's host, and the path in front of every method's path.
  ///
  /// Forms: `http://host:port/base`, `https://…`, `unix:/path/to/socket`, `unix:///path/to/socket`,
  /// `unix-abstract:NAME` and `vsock:CID:PORT`. Scheme and host are put in lower case; IPv6 addresses stand in brackets.
  /// The base path is kept as it is, without the slashes at its end, and is empty if there is none. Everything behind
  /// `unix:` is the socket's path, and everything behind `unix-abstract:` its name, both taken literally.
  ///
  /// - Throws: ``ConnectError`` with `invalid_argument`, whose message has the text and what is wrong with it (without
  ///   any user name and password).
  package static func parse(host text: String) throws(ConnectError) -> (origin: Origin, pathPrefix: String) {
    guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
      throw self.error(text, "has a control character")
    }
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
      throw self.error(text, "has no scheme; it has to begin with \(self.schemes)")
    }
    let rest = text[text.utf8.index(after: colon)...]
    guard let scheme = Scheme(rawValue: String(text[..<colon]).asciiLowercased) else {
      throw self.error(
        text,
        rest.hasPrefix("//")
          ? "has a scheme other than http, https, unix, unix-abstract and vsock"
          : "has no scheme; it has to begin with \(self.schemes)"
      )
    }
    switch scheme {
    case .unix: return (try self.parseSocketPath(rest, text: text), "")
    case .unixAbstract: return (try self.parseSocketName(rest, text: text), "")
    case .vsock: return (try self.parseVsock(rest, text: text), "")
    case .http, .https: break
    }
    guard rest.hasPrefix("//") else { throw self.error(text, "has no '//' behind its scheme") }
    return try self.parseAuthority(rest.dropFirst(2), scheme: scheme, text: text)
  }

  private static func parseSocketPath(_ rest: Substring, text: String) throws(ConnectError) -> Origin {
    let path = rest.hasPrefix("//") ? rest.dropFirst(2) : rest
    guard path.hasPrefix("/") else { throw self.error(text, "does not name a socket by an absolute path") }
    guard path.utf8.count <= self.maximumSocketPathLength else {
      throw self.error(
        text,
        "names a socket by a path of \(path.utf8.count) bytes; the limit is \(self.maximumSocketPathLength)"
      )
    }
    return Origin(scheme: .unix, host: String(path), port: Scheme.unix.defaultPort)
  }

  private static func parseSocketName(_ name: Substring, text: String) throws(ConnectError) -> Origin {
    guard !name.isEmpty else {
      throw self.error(text, "does not name a socket; write unix-abstract:NAME, without the NUL in front")
    }
    guard name.utf8.count <= self.maximumSocketPathLength else {
      throw self.error(
        text,
        "names a socket by \(name.utf8.count) bytes; the limit is \(self.maximumSocketPathLength)"
      )
    }
    return Origin(scheme: .unixAbstract, host: String(name), port: Scheme.unixAbstract.defaultPort)
  }

  private static func parseVsock(_ rest: Substring, text: String) throws(ConnectError) -> Origin {
    guard let address = VsockPort(rest) else {
      throw self.error(text, "is no address of a virtual machine; write \(VsockPort.form)")
    }
    return Origin(address)
  }

  private static func parseAuthority(
    _ rest: Substring,
    scheme: Scheme,
    text: String
  ) throws(ConnectError) -> (origin: Origin, pathPrefix: String) {
    let authority = rest.prefix { !"/?#".contains($0) }
    var path = rest[authority.endIndex...]
    guard !Authority.hasUserInformation(authority) else {
      throw self.error(text, Authority.userInformation.text)
    }
    guard !path.utf8.contains(UInt8(ascii: "?")) else { throw self.error(text, "has a query") }
    guard !path.utf8.contains(UInt8(ascii: "#")) else { throw self.error(text, "has a fragment") }
    guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
      throw self.error(text, "has a path with a character that must not be in a URL")
    }
    while path.hasSuffix("/") { path.removeLast() }

    do throws(Authority.Problem) {
      let parsed = try Authority(authority)
      return (
        Origin(scheme: scheme, host: parsed.host, port: parsed.port ?? scheme.defaultPort),
        String(path)
      )
    } catch {
      throw self.error(text, error.text)
    }
  }

  private static func error(_ text: String, _ problem: String) -> ConnectError {
    ConnectError(code: .invalidArgument, message: "host '\(self.printable(text))' \(problem)")
  }

  /// `text` for an error message, without user information, which may hold a password.
  static func printable(_ text: String) -> String {
    var shown = text[...]
    if let at = text.utf8.lastIndex(of: UInt8(ascii: "@")) {
      let end = text.utf8.firstIndex(of: UInt8(ascii: ":")).map { text.utf8.index(after: $0) }
      shown = text[..<(end.map { min($0, at) } ?? text.startIndex)] + "…" + text[at...]
    }
    return shown.unicodeScalars.reduce(into: "") { result, scalar in
      result.append(scalar.value < 0x20 || scalar.value == 0x7f ? "?" : Character(scalar))
    }
  }
}
