internal import Connect

/// A token as one attempt of a call shows it.
struct CredentialsLease: Sendable, CustomStringConvertible, CustomReflectable {
  /// Counts the tokens, from 1.
  let generation: UInt64
  let token: AccessToken
  /// The configured header with scheme and value, and the token's further headers.
  let headers: Headers
  /// The names of ``headers``.
  let names: Set<String>

  init(_ token: AccessToken, generation: UInt64, _ configuration: Credentials.Configuration) {
    self.generation = generation
    self.token = token
    var headers = Headers()
    if !token.value.isEmpty {
      let value = (token.scheme ?? configuration.scheme).map { "\($0) \(token.value)" } ?? token.value
      headers.add(name: configuration.header, value: value)
    }
    headers.append(contentsOf: token.headers)
    self.headers = headers
    self.names = Set(headers.map(\.name))
  }

  var description: String { "CredentialsLease(generation: \(self.generation))" }
  var customMirror: Mirror { Mirror(self, children: ["generation": self.generation]) }
}
