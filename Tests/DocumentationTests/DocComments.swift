import Connect
import ConnectChannels
import ConnectInterceptors
import ConnectNIO
import ConnectProtobufC
import ConnectSimulation
import ConnectTesting
import ConnectXDS
import Logging
import NIOCore
import ProtobufCExamples
import ProtobufCStubs
import ServiceLifecycle

/// The names from which the code of doc comments starts. `extract-code` makes each of their fences a method of this type.
///
/// The methods are compiled, and never run. Articles do not see these names: they have hidden lines.
struct DocComments: Sendable {
  typealias SayRequest = Connectrpc_Eliza_V1_SayRequest
  typealias SayResponse = Connectrpc_Eliza_V1_SayResponse
  typealias ElizaMethods = Connectrpc_Eliza_V1_ElizaServiceClient.Methods

  // MARK: Clients and calls

  var client: ProtocolClient { given() }
  var config: ProtocolClientConfig {
    get { given() }
    nonmutating set {}
  }
  var configuration: NIOHTTPClient.Configuration {
    get { given() }
    nonmutating set {}
  }
  var options: CallOptions {
    get { given() }
    nonmutating set {}
  }
  var say: MethodSpec<SayRequest, SayResponse> { given() }
  var lookup: MethodSpec<SayRequest, SayResponse> { given() }
  var count: MethodSpec<SayRequest, SayResponse> { given() }
  var request: SayRequest { given() }
  var response: ResponseMessage<SayResponse> { given() }
  var headers: Headers { given() }

  func answer(_: SayRequest) async throws {}
  func show(_: ResponseMessage<SayResponse>) {}
  func warn() {}

  // MARK: Fleets

  var userID: UInt64 { given() }
  var channel: ChannelConfiguration { given() }
  var registry: Registry { given() }
  var service: SimulatedService { given() }
  var xds: XDSClient { given() }

  struct Registry: Sendable {
    func lookUp(_: String, _: @escaping @Sendable ([EndpointAddress]) -> Void) {}
  }

  // MARK: Interceptors

  var world: ExplorerWorld { given() }
  var budget: RetryBudget { given() }
  var credentials: Credentials { given() }
  var cache: ResponseCache { given() }
  var jar: CookieJar { given() }
  var version: Adapter { given() }
  var signature: Adapter { given() }
  var once: Retrier { given() }
  var parts: ClientParts {
    get { given() }
    nonmutating set {}
  }
  var signer: Signer { given() }
  var recorded: Recorder { given() }
  var login: Login { given() }
  var refresh: CredentialsRefresh { given() }
  var id: String { given() }
  var secret: [UInt8] { given() }
  var token: String {
    get { given() }
    nonmutating set {}
  }

  func token() async throws -> String { given() }
  func fetchToken() async -> String { given() }
  func redacted(_: ConnectError) -> ConnectError { given() }
  func completion(_: Result<Login.Response, ConnectError>) {}

  struct Signer: Sendable {
    func sign(_: ByteBuffer) async throws -> String { given() }
  }

  struct Recorder: Sendable {
    func append<Verb>(_: Verb) {}
  }

  /// A client as it is generated, with callbacks.
  struct Login: Sendable {
    struct Request: Sendable {
      var clientID: String
      var refreshToken: String?

      static func with(_: (inout Request) -> Void) -> Request { given() }
    }

    struct Response: Sendable {
      let token: String
      let refreshToken: String?
      let expiresIn: Int
    }

    func getToken(_: Request, options: CallOptions = CallOptions()) async throws -> Response { given() }

    @discardableResult
    func getToken(
      request: Request,
      options: CallOptions = CallOptions(),
      completion: @escaping @Sendable (ResponseMessage<Response>) -> Void
    ) -> CallHandle {
      given()
    }
  }

  final class LoginInterceptor: Interceptor {}
  final class ProgressInterceptor: Interceptor {}

  final class TokenInterceptor: Interceptor {
    init(config: ProtocolClientConfig) {}
    init(store: TokenStore) {}
  }

  final class TokenStore: Sendable {
    let refreshes = 0
    init(fetch: @escaping @Sendable () async throws -> String) {}
  }

  final class MyInterceptor: Interceptor {
    init(config: ProtocolClientConfig) {}
  }

  final class BackoffInterceptor: Interceptor {
    init(clock: any Clock<Duration>) {}
  }

  // MARK: Services

  var worker: any Service { given() }
  var logger: Logger { given() }

  // MARK: Tests

  var executor: VirtualExecutor { given() }
  var driver: InterceptorDriver { given() }
  var transport: InMemoryTransport { given() }
  var server: EndpointAddress { given() }

  func addTeardownBlock(_: @escaping @Sendable () async throws -> Void) {}

  enum UsersMethods {
    static var get: MethodSpec<SayRequest, SayResponse> { given() }
    static var list: MethodSpec<SayRequest, SayResponse> { given() }
  }

  // MARK: Simulations

  var trace: TrafficTrace { given() }
  var newRules: ServiceConfig { given() }
  var text: String { given() }
  var cluster: SimulatedCluster { given() }
  var first: SimulationReport { given() }
  var second: SimulationReport { given() }
  var getUser: MethodSpec<UserRequest, User> { given() }

  struct UserRequest: Codable {
    let id: Int
  }

  struct User: Codable {
    let id: Int
  }

  // MARK: Messages

  var bytes: ByteBuffer { given() }
  var message: CMessage<Connect__Test__V1__Payload> { given() }
  var method: MethodSpec<CMessage<Acme__V1__GetRequest>, CMessage<Acme__V1__GetResponse>> { given() }

  /// As Swift sees what protoc-c has written.
  struct Acme__V1__GetRequest: CMessageStruct {
    static var messageType: CMessageType<Self> { given() }
    var id: Int32
    var name: UnsafeMutablePointer<CChar>!
  }

  struct Acme__V1__GetResponse: CMessageStruct {
    static var messageType: CMessageType<Self> { given() }
    var user: UnsafeMutablePointer<Acme__V1__User>!
  }

  struct Acme__V1__User: CMessageStruct {
    static var messageType: CMessageType<Self> { given() }
    var name: UnsafeMutablePointer<CChar>!
  }
}
