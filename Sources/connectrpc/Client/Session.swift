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
    let configuration = try server.httpConfiguration(for: host, needsDuplex: needsDuplex)
    server.noteUnused(for: host)
    self.httpClient = NIOHTTPClient(configuration: configuration)
  }

  /// The server's reflection, with the headers of the call, which may have credentials.
  ///
  /// - Parameter timeout: Of each question, where the options do not say less; nil for theirs.
  func reflection(timeout: Duration? = nil) throws -> ReflectionClient {
    let config = self.server.clientConfig(for: self.host)
    let limits = [timeout, self.server.timeout?.duration].compactMap(\.self)
    var options = try self.server.callOptions()
    options.timeout = limits.min()
    return ReflectionClient(ProtocolClient(httpClient: self.httpClient, config: config), options: options)
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
