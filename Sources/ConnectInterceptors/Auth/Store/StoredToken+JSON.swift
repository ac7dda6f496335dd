public import Connect

extension StoredToken {
  private static let version: Int64 = 1

  /// The token as JSON, with its secrets, for stores that keep text. A version in it lets later versions of the library read
  /// it.
  public var encoded: String {
    var members: [JSONValue.Member] = []
    func add(_ name: String, _ value: JSONValue) { members.append(.init(name: name, value: value)) }
    add("version", .number("\(Self.version)"))
    add("access_token", .string(self.token.value))
    if let scheme = self.token.scheme { add("scheme", .string(scheme)) }
    if let refreshToken = self.token.refreshToken { add("refresh_token", .string(refreshToken)) }
    if let expiry = self.expiry { add("expires_at", .number("\(expiry.components.seconds)")) }
    if !self.token.headers.isEmpty {
      add("headers", .array(self.token.headers.map { .array([.string($0.name), .string($0.value)]) }))
    }
    add("login", .string(self.login))
    return JSONValue.object(members).description
  }

  /// Reads what ``encoded`` gave. Members that it does not know are ignored.
  ///
  /// - Throws: `data_loss` if the text is anything else, or `failed_precondition` if a later version of the library has
  ///   written it. The message has nothing of the text.
  public init(encoded text: String) throws(ConnectError) {
    let value: JSONValue
    do {
      value = try JSONParser.parse(text)
    } catch {
      // Not the problem itself, which may quote a secret.
      throw Self.broken("they are not JSON (line \(error.line), column \(error.column))")
    }
    guard case .object(let list) = value else { throw Self.broken("they are \(value.kind)") }
    let members = Members(values: Dictionary(list.map { ($0.name, $0.value) }) { first, _ in first })
    guard let version = try members.number("version") else { throw Self.broken("they have no 'version'") }
    guard version == Self.version else {
      throw ConnectError(
        code: .failedPrecondition,
        message:
          "the stored credentials have version \(version), and this program reads version \(Self.version)"
      )
    }
    guard let value = try members.string("access_token") else {
      throw Self.broken("they have no 'access_token'")
    }
    let token = AccessToken(
      value,
      headers: try members.headers("headers"),
      refreshToken: try members.string("refresh_token"),
      scheme: try members.string("scheme")
    )
    self.init(
      token,
      expiry: try members.number("expires_at").map { .seconds($0) },
      login: try members.string("login") ?? ""
    )
  }

  fileprivate static func broken(_ problem: String) -> ConnectError {
    ConnectError(code: .dataLoss, message: "the stored credentials are broken: \(problem)")
  }
}

/// The members of a JSON object. Those that are null count as absent.
private struct Members {
  let values: [String: JSONValue]

  func string(_ name: String) throws(ConnectError) -> String? {
    switch self.values[name] {
    case .string(let text): return text
    case nil, .null: return nil
    case let value?: throw StoredToken.broken("'\(name)' is \(value.kind) instead of a string")
    }
  }

  func number(_ name: String) throws(ConnectError) -> Int64? {
    switch self.values[name] {
    case .number(let text):
      guard let number = Int64(text) else { throw StoredToken.broken("'\(name)' is not a whole number") }
      return number
    case nil, .null: return nil
    case let value?: throw StoredToken.broken("'\(name)' is \(value.kind) instead of a number")
    }
  }

  func headers(_ name: String) throws(ConnectError) -> Headers {
    switch self.values[name] {
    case .array(let fields):
      var headers = Headers()
      for field in fields {
        guard case .array(let pair) = field, pair.count == 2, case .string(let name) = pair[0],
          case .string(let value) = pair[1]
        else { throw StoredToken.broken("'headers' is not a list of names and values") }
        headers.add(name: name, value: value)
      }
      return headers
    case nil, .null: return Headers()
    case let value?: throw StoredToken.broken("'\(name)' is \(value.kind) instead of a list")
    }
  }
}
