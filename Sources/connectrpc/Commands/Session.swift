import Connect
import ConnectNIO
import ConnectProtobufC
import ConnectReflection

/// A client for one run of the program, and its server's reflection.
struct Session {
  let host: String
  let httpClient: NIOHTTPClient
  let server: ServerOptions

  init(host: String, _ server: ServerOptions, needsDuplex: Bool = false) throws {
    self.host = host
    self.server = server
    self.httpClient = NIOHTTPClient(
      configuration: try server.httpConfiguration(for: host, needsDuplex: needsDuplex)
    )
  }

  /// The server's reflection, with the headers of the call, which may have credentials.
  func reflection() throws -> ReflectionClient {
    let config = self.server.clientConfig(for: self.host)
    return ReflectionClient(
      ProtocolClient(httpClient: self.httpClient, config: config),
      options: CallOptions(headers: try self.server.requestHeaders())
    )
  }

  /// Runs with a session that is closed afterwards.
  static func run<Value>(_ session: Session, _ work: (Session) async throws -> Value) async throws -> Value {
    do {
      let value = try await work(session)
      await session.httpClient.shutdown(within: .zero)
      return value
    } catch {
      await session.httpClient.shutdown(within: .zero)
      throw error
    }
  }
}
