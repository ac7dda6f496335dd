internal import Connect
internal import ConnectTesting
internal import Foundation
internal import Logging
internal import SwiftProtobuf
internal import Synchronization
internal import XCTest

@testable internal import ConnectXDS

/// Control planes that do what a test says. Used on the executor, or while it is idle.
final class ScriptedPlanes: DiscoveryTransport {
  final class Stream: DiscoveryCall {
    let server: String
    let onEvent: @Sendable (DiscoveryEvent) -> Void
    /// Whether requests go out at once.
    var takesRequests = true
    var requests: [Envoy_Service_Discovery_V3_DiscoveryRequest] = []
    private var completions: [@Sendable (Bool) -> Void] = []
    /// How many responses the client takes.
    var demand = 1
    var isCancelled = false
    private(set) var hasEnded = false

    init(_ server: String, _ onEvent: @escaping @Sendable (DiscoveryEvent) -> Void) {
      self.server = server
      self.onEvent = onEvent
    }

    func send(
      _ request: Envoy_Service_Discovery_V3_DiscoveryRequest,
      completion: @escaping @Sendable (Bool) -> Void
    ) {
      self.requests.append(request)
      if self.takesRequests { completion(true) } else { self.completions.append(completion) }
    }

    func takeRequest() {
      self.completions.removeFirst()(true)
    }

    func end(_ error: ConnectError) {
      self.hasEnded = true
      self.onEvent(.ended(error))
    }

    func requestNext() { self.demand += 1 }
    func cancel() { self.isCancelled = true }
  }

  var streams: [Stream] = []
  /// Servers to which no stream comes about.
  var unreachable: Set<String> = []
  /// Whether streams get a connection at once.
  var connects = true
  var takesRequests = true

  func open(
    to server: XDSBootstrap.Server,
    onEvent: @escaping @Sendable (DiscoveryEvent) -> Void
  ) -> any DiscoveryCall {
    let stream = Stream(server.uri, onEvent)
    stream.takesRequests = self.takesRequests
    self.streams.append(stream)
    if self.unreachable.contains(server.uri) {
      stream.end(ConnectError(code: .unavailable, message: "connection refused"))
    } else if self.connects {
      onEvent(.started)
    }
    return stream
  }
}

/// What a watch has heard: `+` with the content, or `-` with code and message.
final class Heard: Sendable {
  private let all = Mutex<[String]>([])

  func hear(_ state: ResourceState) {
    self.all.withLock { all in
      switch state {
      case .present(let resource): all.append("+\(Self.content(resource))")
      case .missing(let error): all.append("-\(error.code.name) \(error.message ?? "")")
      }
    }
  }

  private static func content(_ resource: Resource) -> String {
    guard case .listener(let listener) = resource, case .named(let name) = listener.routes else { return "?" }
    return name
  }

  /// What was heard since this was asked last.
  func take() -> [String] {
    self.all.withLock { all in
      defer { all = [] }
      return all
    }
  }
}

/// A client with scripted control planes, in virtual time.
///
/// Resources are texts: `name=content` can be used, `name!problem` cannot, and `!problem` has no name.
final class DiscoveryFixture {
  static let server = XDSBootstrap.Server(uri: "one", credentials: .insecure)

  let executor = VirtualExecutor()
  let planes = ScriptedPlanes()
  let client: XDSClient
  private var watches: [ObjectIdentifier: any ResourceWatch] = [:]

  init(_ bootstrap: XDSBootstrap = XDSBootstrap(servers: [DiscoveryFixture.server], node: .init(id: "me"))) {
    let executor = self.executor
    self.client = XDSClient(
      bootstrap: bootstrap,
      on: executor,
      seed: 1,
      logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
      transport: { _ in throw ConnectError(code: .internalError, message: "no transport") },
      streams: self.planes,
      wallClock: { .seconds(1000) + executor.now },
      decode: Self.decode
    )
  }

  static func decode(
    _ message: Google_Protobuf_Any,
    _ type: ResourceType
  ) -> ResourceDecoder.Decoded {
    let text = String(decoding: message.value, as: UTF8.self)
    if let equals = text.lastIndex(of: "=") {
      let content = String(text[text.index(after: equals)...])
      let listener = ListenerResource(routes: .named(content), maximumStreamDuration: nil, filters: [])
      return .init(name: String(text[..<equals]), resource: .success(.listener(listener)), message: message)
    }
    let parts = text.split(separator: "!", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    return .init(
      name: parts[0].isEmpty ? nil : parts[0],
      resource: .failure(ResourceProblem(problems: [parts.last ?? ""])),
      message: message
    )
  }

  /// Runs work on the executor, and all that follows from it.
  func on<Value>(_ work: () -> Value) -> Value {
    let value = self.executor.sync(work)
    self.executor.runUntilIdle()
    return value
  }

  func watch(_ name: String, _ type: ResourceType = .listener) -> Heard {
    let heard = Heard()
    self.watches[ObjectIdentifier(heard)] = self.on { self.client.watch(type, name) { heard.hear($0) } }
    return heard
  }

  func cancel(_ heard: Heard) {
    self.on { self.cancelNow(heard) }
  }

  /// As ``cancel(_:)``, within a piece of work.
  func cancelNow(_ heard: Heard) {
    self.watches.removeValue(forKey: ObjectIdentifier(heard))?.cancel()
  }

  /// The newest stream to a server.
  func stream(_ server: String = "one") throws -> ScriptedPlanes.Stream {
    try XCTUnwrap(self.planes.streams.last { $0.server == server }, "no stream to \(server)")
  }

  /// What was sent on the newest stream to a server, since this was asked last: type, names, version, nonce, problem.
  func sent(_ server: String = "one") throws -> [String] {
    let stream = try self.stream(server)
    defer { stream.requests = [] }
    return stream.requests.map { request in
      let type = request.typeURL.split(separator: ".").last ?? ""
      var text = "\(type) \(request.resourceNames.joined(separator: ","))"
      if !request.versionInfo.isEmpty { text += " v\(request.versionInfo)" }
      if !request.responseNonce.isEmpty { text += " n\(request.responseNonce)" }
      if request.hasNode { text += " node=\(request.node.id)" }
      if request.hasErrorDetail { text += " \(request.errorDetail.code):\(request.errorDetail.message)" }
      return text
    }
  }

  /// A server answers.
  func respond(
    _ resources: [String],
    _ type: ResourceType = .listener,
    version: String,
    nonce: String? = nil,
    url: String? = nil,
    from server: String = "one"
  ) throws {
    self.respond(resources, type, version: version, nonce: nonce, url: url, on: try self.stream(server))
  }

  /// A server answers on a stream.
  func respond(
    _ resources: [String],
    _ type: ResourceType,
    version: String,
    nonce: String? = nil,
    url: String? = nil,
    on stream: ScriptedPlanes.Stream
  ) {
    var response = Envoy_Service_Discovery_V3_DiscoveryResponse()
    response.typeURL = url ?? type.url
    response.versionInfo = version
    response.nonce = nonce ?? "\(version)"
    response.resources = resources.map { text in
      .with {
        $0.typeURL = type.url
        $0.value = Data(text.utf8)
      }
    }
    XCTAssertGreaterThan(stream.demand, 0, "the client does not take a response")
    stream.demand -= 1
    self.on { stream.onEvent(.response(response)) }
  }

  /// A stream ends.
  func end(_ server: String = "one", _ message: String = "gone") throws {
    let stream = try self.stream(server)
    self.on { stream.end(ConnectError(code: .unavailable, message: message)) }
  }

  func snapshot() -> [String] {
    self.on { self.client.currentSnapshot.resources.map { "\($0.name) \($0.status) \($0.version ?? "-")" } }
  }
}
