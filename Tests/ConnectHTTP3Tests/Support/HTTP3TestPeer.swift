internal import CQUICPeer
internal import Connect
internal import ConnectChannels
internal import Logging
internal import LoopbackServer
internal import NIOCore
internal import NIOEmbedded
internal import NIOPosix
internal import XCTest

@testable internal import ConnectHTTP3
@testable internal import ConnectNIO

/// A connection under test on an embedded channel in virtual time, and a server on the same C libraries. Datagrams are
/// passed between them in memory.
final class HTTP3TestPeer {
  enum Direction { case toServer, toClient }

  /// What the server has received on one stream.
  struct Request: Equatable {
    var headers: [String: String] = [:]
    var body: [UInt8] = []
    var trailers: [String: String] = [:]
    var hasHead = false
    var isComplete = false
    var resetCode: UInt64?
    var closeCode: UInt64?
    /// Whether something of it came before the handshake was complete.
    var isEarly = false

    var text: String { String(decoding: self.body, as: UTF8.self) }
  }

  static let address = "127.0.0.1"

  let channel = EmbeddedChannel()
  let connection: HTTP3Connection
  let delegate = RecordingDelegate()
  let certificates: TestCertificates
  private let credentials: GnuTLSCredentials
  /// The last ticket of the server.
  private(set) var ticket: SessionTicket?
  private(set) var handshake: Result<Void, ConnectError>?
  private(set) var requests: [Int64: Request] = [:]
  private(set) var isServerEstablished = false
  private(set) var server: OpaquePointer?
  /// The libngtcp2 error of the server.
  private(set) var serverError: Int32 = 0
  private let identity: ServerIdentity
  private var options: quic_peer_options
  private var serverAddress: SocketAddress
  private var clientAddress: SocketAddress

  /// Maps a sent datagram to the received datagrams: none, one or more.
  var network: (Direction, [UInt8]) -> [[UInt8]] = { [$1] }
  /// The delay of a datagram in either direction.
  var delay = TimeAmount.zero
  /// Runs when the server has received a whole request.
  var onRequest: ((HTTP3TestPeer, Int64) -> Void)?
  /// Whether the server validates the client's address first (Retry).
  var asksForToken = false
  /// Whether the client's system coalesces the server's datagrams (generic receive offload).
  var coalesces = false
  private var coalesced: (bytes: [UInt8], size: Int)?
  /// The number of the client's reads.
  private(set) var clientReadCount = 0
  /// The congestion marks of the client's datagrams, in order. Datagrams that are passed to the system together count
  /// as one.
  private(set) var clientMarks: [NIOExplicitCongestionNotificationState?] = []
  /// The number of datagrams that each side has received.
  private(set) var toServerCount = 0
  private(set) var toClientCount = 0

  /// - Parameters:
  ///   - earlier: A connection to the same server.
  ///   - ticket: Continues an earlier session; nil for that of `earlier`.
  init(
    _ certificates: TestCertificates,
    after earlier: HTTP3TestPeer? = nil,
    ticket: SessionTicket? = nil,
    tls: NIOHTTPClient.Configuration.TLS? = nil,
    serverName: String = "localhost",
    limits: HTTP3SessionLimits = HTTP3SessionLimits(),
    keepalive: HTTP3Keepalive = HTTP3Keepalive(),
    requiresClientCertificate: Bool = false,
    _ change: (inout quic_peer_options) -> Void = { _ in }
  ) throws {
    self.certificates = certificates
    self.options = quic_peer_options()
    quic_peer_default_options(&self.options)
    change(&self.options)
    self.identity =
      try earlier?.identity
      ?? ServerIdentity(certificates, self.options, requiresClientCertificate: requiresClientCertificate)
    self.identity.fill(&self.options)
    self.serverAddress = try SocketAddress(ipAddress: Self.address, port: 443)
    self.clientAddress = try SocketAddress(ipAddress: Self.address, port: 50_000)
    let material = try TLSMaterial(
      tls ?? .init(trustRoots: .pemBytes(Array(certificates.authorityPEM.utf8)))
    )
    let credentials = try earlier?.credentials ?? GnuTLSCredentials(material)
    self.credentials = credentials
    let identifier = try ReferenceIdentifier(serverName)
    let origin = Origin(scheme: .https, host: serverName, port: 443)
    let check = ServerCertificateCheck(credentials.trust, identity: identifier, origin: origin)
    let session = try HTTP3Session(
      local: self.clientAddress,
      remote: self.serverAddress,
      authority: "demo.example",
      tls: GnuTLSSession(
        credentials,
        serverName: identifier.serverNameIndication,
        check: check,
        on: self.channel.eventLoop,
        ticket: ticket ?? earlier?.ticket,
        keepsTicket: self.options.tickets != 0
      ),
      limits: limits,
      now: self.channel.eventLoop.now.uptimeNanoseconds
    )
    self.connection = HTTP3Connection(
      channel: self.channel,
      session: session,
      remoteAddress: self.serverAddress,
      peer: "https://\(serverName)",
      keepalive: keepalive,
      logger: Logger(label: "test")
    )
    self.connection.onTicket = { [weak self] in self?.ticket = $0 }
    self.connection.handshake.onReady = { [weak self] result in
      self?.handshake = result
      if case .success = result { self?.connection.state.delegate = self?.delegate }
    }
    try self.channel.connect(to: self.serverAddress).wait()
    try self.channel.pipeline.syncOperations.addHandler(self.connection)
  }

  deinit {
    self.channel.close(promise: nil)
    self.channel.embeddedEventLoop.run()
    quic_peer_free(self.server)
  }

  var now: UInt64 { self.channel.eventLoop.now.uptimeNanoseconds }

  // MARK: Time

  /// Lets the client do what is due. Nothing of it reaches the server yet.
  func runClient() { self.channel.embeddedEventLoop.run() }

  /// Lets both sides send and answer for some milliseconds, so that paced datagrams are sent, too.
  func run() throws { try self.elapse(.milliseconds(5)) }

  /// Lets both sides send and answer until neither has more to send at this time.
  private func exchange() throws {
    var isMoving = true
    while isMoving {
      self.channel.embeddedEventLoop.run()
      isMoving = false
      while let envelope = try self.channel.readOutbound(as: AddressedEnvelope<ByteBuffer>.self) {
        isMoving = true
        self.clientMarks.append(envelope.metadata?.ecnState)
        for datagram in envelope.datagrams {
          for arrived in self.network(.toServer, datagram) { self.afterDelay { $0.receiveAtServer(arrived) } }
        }
      }
      if self.sendFromServer() { isMoving = true }
    }
  }

  /// Sends the server's pending datagrams, and returns whether there were any.
  private func sendFromServer() -> Bool {
    var hasSent = false
    var buffer = [UInt8](repeating: 0, count: 1452)
    while let server = self.server, self.serverError == 0 {
      let count = quic_peer_write(server, &buffer, buffer.count, self.now)
      guard count > 0 else { break }
      hasSent = true
      self.deliverToClient(Array(buffer[..<count]))
    }
    self.readCoalesced()
    return hasSent
  }

  func deliverToClient(_ datagram: [UInt8]) {
    for arrived in self.network(.toClient, datagram) { self.afterDelay { $0.injectAtClient(arrived) } }
  }

  private func afterDelay(_ deliver: @escaping (HTTP3TestPeer) -> Void) {
    guard self.delay > .zero else { return deliver(self) }
    self.channel.eventLoop.assumeIsolated().scheduleTask(in: self.delay) { [weak self] in
      if let self { deliver(self) }
    }
  }

  /// Injects a datagram directly at the client, bypassing the simulated network.
  func injectAtClient(_ datagram: [UInt8]) {
    self.toClientCount += 1
    guard self.coalesces else { return self.read(datagram) }
    if let (bytes, size) = self.coalesced, bytes.count % size == 0, datagram.count <= size,
      bytes.count + datagram.count < 1 << 16
    {
      self.coalesced = (bytes + datagram, size)
    } else {
      self.readCoalesced()
      self.coalesced = (datagram, datagram.count)
    }
  }

  private func readCoalesced() {
    guard let (bytes, size) = self.coalesced else { return }
    self.coalesced = nil
    self.read(bytes, segmentSize: bytes.count > size ? size : nil)
  }

  private func read(_ bytes: [UInt8], segmentSize: Int? = nil) {
    self.clientReadCount += 1
    let envelope = AddressedEnvelope(
      remoteAddress: self.serverAddress,
      data: ByteBuffer(bytes: bytes),
      metadata: .init(ecnState: .transportNotCapable, packetInfo: nil, segmentSize: segmentSize)
    )
    self.channel.pipeline.fireChannelRead(envelope)
    self.channel.pipeline.fireChannelReadComplete()
    self.channel.embeddedEventLoop.run()
  }

  /// Advances the time, and runs everything that becomes due.
  func elapse(_ duration: TimeAmount) throws {
    let end = self.channel.eventLoop.now + duration
    try self.exchange()
    while self.channel.eventLoop.now < end {
      // A step is a millisecond at most, so that a timer's effect on one side soon reaches the other side.
      let step = min(TimeAmount.milliseconds(1), end - self.channel.eventLoop.now)
      self.channel.embeddedEventLoop.advanceTime(by: step)
      if let server = self.server, self.serverError == 0, quic_peer_expiry(server) <= self.now {
        self.serverError = quic_peer_expire(server, self.now)
      }
      try self.exchange()
    }
  }

  // MARK: The server

  private func receiveAtServer(_ datagram: [UInt8]) {
    self.toServerCount += 1
    if self.server == nil, self.asksForToken, let retry = self.retry(to: datagram) {
      self.deliverToClient(retry)
      return
    }
    if self.server == nil {
      let context = Unmanaged.passUnretained(self).toOpaque()
      self.server = self.serverAddress.withSockAddr { local, localCount in
        self.clientAddress.withSockAddr { remote, remoteCount in
          quic_peer_accept(
            self.identity.pointer,
            &self.options,
            datagram,
            datagram.count,
            local,
            localCount,
            remote,
            remoteCount,
            { context, kind, stream, code, name, nameCount, value, valueCount in
              guard let context else { return }
              Unmanaged<HTTP3TestPeer>.fromOpaque(context).takeUnretainedValue().record(
                kind,
                stream,
                code,
                String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self),
                UnsafeBufferPointer(start: value, count: valueCount)
              )
            },
            context,
            self.now
          )
        }
      }
    }
    guard let server = self.server, self.serverError == 0 else { return }
    self.serverError = quic_peer_read(server, datagram, datagram.count, self.now)
    guard self.serverError != 0 else { return }
    var buffer = [UInt8](repeating: 0, count: 1452)
    let count = quic_peer_give_up(server, self.serverError, &buffer, buffer.count, self.now)
    if count > 0 { self.deliverToClient(Array(buffer[..<count])) }
  }

  private func retry(to datagram: [UInt8]) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 1200)
    let count = self.clientAddress.withSockAddr { remote, remoteCount in
      quic_peer_retry(datagram, datagram.count, remote, remoteCount, &buffer, buffer.count, self.now)
    }
    return count > 0 ? Array(buffer[..<count]) : nil
  }

  private func record(
    _ kind: Int32,
    _ stream: Int64,
    _ code: UInt64,
    _ name: String,
    _ value: UnsafeBufferPointer<UInt8>
  ) {
    let kind = quic_peer_event_kind(rawValue: UInt32(kind))
    if kind == QUIC_PEER_HANDSHAKE {
      self.isServerEstablished = true
      return
    }
    var request = self.requests[stream] ?? Request()
    let text = String(decoding: value, as: UTF8.self)
    switch kind {
    case QUIC_PEER_HEADER: request.headers[name] = text
    case QUIC_PEER_HEADERS: request.hasHead = true
    case QUIC_PEER_DATA: request.body += value
    case QUIC_PEER_TRAILER: request.trailers[name] = text
    case QUIC_PEER_END: request.isComplete = true
    case QUIC_PEER_RESET: request.resetCode = code
    case QUIC_PEER_CLOSED: request.closeCode = code
    case QUIC_PEER_EARLY: request.isEarly = true
    default: break
    }
    self.requests[stream] = request
    if kind == QUIC_PEER_END { self.onRequest?(self, stream) }
  }

  // MARK: The client

  func start(
    _ handler: RecordingHandler,
    method: HTTPStreamRequest.Method = .post,
    target: String = "/demo.Service/Method",
    headers: Headers = ["content-type": ["application/proto"]],
    body: HTTPStreamRequest.Body,
    hasNoSideEffects: Bool = false,
    authority: String? = nil
  ) -> any HTTPStream {
    var request = HTTPStreamRequest(method: method, target: target, headers: headers, body: body)
    request.hasNoSideEffects = hasNoSideEffects
    request.authority = authority
    let stream = self.connection.startStream(request, handler: handler)
    handler.stream = stream
    return stream
  }

  @discardableResult
  func startUnary(_ handler: RecordingHandler, body: String = "hello") -> any HTTPStream {
    self.start(handler, body: .complete(ByteBuffer(string: body)))
  }

  /// Runs the handshake, which must succeed.
  func connect(file: StaticString = #filePath, line: UInt = #line) throws {
    try self.run()
    guard case .success? = self.handshake else {
      XCTFail(
        "no handshake: \(String(describing: self.handshake)) \(self.serverError)",
        file: file,
        line: line
      )
      return
    }
  }

  var handshakeError: ConnectError? {
    if case .failure(let error)? = self.handshake { error } else { nil }
  }
}

/// What all connections of a server share.
private final class ServerIdentity {
  let pointer: OpaquePointer
  private let strings: [UnsafeMutablePointer<CChar>?]

  init(
    _ certificates: TestCertificates,
    _ options: quic_peer_options,
    requiresClientCertificate: Bool
  ) throws {
    let authority = requiresClientCertificate ? certificates.authorityPEM : nil
    self.strings = [
      strdup(certificates.serverCertificatePEM), strdup(certificates.serverKeyPEM),
      authority.map { strdup($0) } ?? nil,
    ]
    var options = options
    Self.fill(&options, self.strings)
    self.pointer = try XCTUnwrap(quic_peer_identity_new(&options))
  }

  deinit {
    quic_peer_identity_free(self.pointer)
    for string in self.strings { free(string) }
  }

  func fill(_ options: inout quic_peer_options) { Self.fill(&options, self.strings) }

  private static func fill(_ options: inout quic_peer_options, _ strings: [UnsafeMutablePointer<CChar>?]) {
    options.certificate = UnsafePointer(strings[0])
    options.key = UnsafePointer(strings[1])
    options.client_authority = UnsafePointer(strings[2])
  }
}

extension AddressedEnvelope<ByteBuffer> {
  var datagrams: [[UInt8]] {
    let bytes = Array(self.data.readableBytesView)
    let size = self.metadata?.segmentSize ?? max(bytes.count, 1)
    return stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
  }
}

extension TLSMaterial {
  /// Takes a TLS configuration that refers to no files.
  init(_ tls: NIOHTTPClient.Configuration.TLS) throws {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let provider = TLSContextProvider(tls, applicationProtocols: ["h3"], logger: Logger(label: "test"))
    self = try provider.context(on: loop).map(\.material).wait()
  }
}

/// Certificates made once for all tests, since making them is slow.
actor SharedCertificates {
  static let shared = SharedCertificates()
  private var task: Task<TestCertificates, any Error>?

  func get() async throws -> TestCertificates {
    let task = self.task ?? Task { try await TestCertificates.make() }
    self.task = task
    return try await task.value
  }
}
