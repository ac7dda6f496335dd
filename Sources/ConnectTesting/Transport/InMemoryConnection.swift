package import Connect
internal import ConnectChannels

/// Where a connection of an ``InMemoryTransport`` leads.
package struct InMemoryRoute: Sendable {
  /// Identifies the connection in the network.
  let number: Int
  let address: EndpointAddress
  /// Whether streams must go over HTTP/2.
  let requiresHTTP2: Bool
  /// The client's zone, for networks with zones.
  package let clientZone: String?
  /// How many streams the server takes before it renews the connection; nil for any number.
  let streamLimit: Int?

  /// The server's address as handlers see it.
  var serverAddress: EndpointAddress? { self.address == InMemoryNetwork.onlyAddress ? nil : self.address }
}

/// A connection of an ``InMemoryTransport``: starts its streams, and ends with them.
///
/// Confined to the executor.
package final class InMemoryConnection: StreamConnection {
  package let route: InMemoryRoute
  private let network: InMemoryNetwork
  /// Called when a call was cancelled, or its deadline has passed: the server may be gone.
  package var onCallGivenUp: ((InMemoryConnection) -> Void)?
  /// Nil once the connection has ended.
  private var delegate: (any StreamConnectionDelegate)?
  /// The open streams, each at the index of its ``InMemoryStream/place``.
  private var streams: [InMemoryStream] = []
  private var startedCount = 0
  private var hasStartedStream = false
  package private(set) var hasServed = false
  package private(set) var renewalCount: Int?
  /// Whether it takes no more streams.
  package private(set) var isDraining = false

  init(_ route: InMemoryRoute, in network: InMemoryNetwork, delegate: any StreamConnectionDelegate) {
    self.route = route
    self.network = network
    self.delegate = delegate
  }

  var server: InMemoryServer { self.network.server }

  private func later(_ work: @escaping @Sendable (InMemoryConnection) -> Void) {
    let here = Confined(self, to: self.server.executor)
    self.server.executor.execute { work(here.value) }
  }

  // MARK: StreamConnection

  package func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.startedCount += 1
    let stream = InMemoryStream(request, handler: handler, on: self, number: self.startedCount)
    stream.place = self.streams.count
    self.streams.append(stream)
    if let streamLimit = self.route.streamLimit, self.startedCount >= streamLimit {
      self.renewalCount = streamLimit
      self.later { $0.goAway() }
      if self.startedCount > streamLimit {
        let refused = Confined(stream, to: self.server.executor)
        self.server.executor.execute { refused.value.fail(.goAway) }
        return stream
      }
    }
    self.server.executor.execute { [server, route] in
      server.receive(stream, requiresHTTP2: route.requiresHTTP2)
    }
    return stream
  }

  package func drain() {
    self.isDraining = true
    self.later { $0.closeIfFinished() }
  }

  package func close(failing error: ConnectError) {
    self.later { $0.end(error) }
  }

  // MARK: Streams

  /// The connection as it is described to a stream that begins.
  func nextInfo() -> HTTPConnectionInfo {
    defer { self.hasStartedStream = true }
    return HTTPConnectionInfo(
      version: .http2,
      isReused: self.hasStartedStream,
      remoteAddress: self.route.serverAddress?.description ?? "memory"
    )
  }

  /// A stream has begun to answer.
  func streamDidAnswer() { self.hasServed = true }

  /// A stream has ended. Not to be called from within a function of the stream.
  func streamDidClose(_ stream: InMemoryStream) {
    // A connection that has ended has already reported its streams.
    guard let delegate = self.delegate else { return }
    let last = self.streams.removeLast()
    if last !== stream {
      last.place = stream.place
      self.streams[stream.place] = last
    }
    delegate.connectionDidCloseStream(self)
    self.closeIfFinished()
  }

  /// As ``streamDidClose(_:)``, from anywhere.
  func streamWasCancelled(_ stream: InMemoryStream) {
    self.later { $0.streamDidClose(stream) }
  }

  /// The paths of the streams that have not ended.
  package var openPaths: [String] { self.streams.map(\.head.path) }

  package var isOpen: Bool { self.delegate != nil }

  // MARK: End

  /// It is not known whether the server is still there: new streams should go elsewhere.
  package func suspect() { self.delegate?.connectionIsSuspect(self) }

  /// The server has answered after all.
  package func isAlive() { self.delegate?.connectionIsAlive(self) }

  /// The server takes no more streams.
  package func goAway() {
    if !self.streams.isEmpty { self.hasServed = true }
    self.announceEnd()
    self.closeIfFinished()
  }

  /// The server is gone, and with it the connection.
  package func disconnect(
    _ error: ConnectError = ConnectError(
      code: .unavailable,
      message: "the connection broke: connection reset by peer"
    )
  ) {
    // A handler may start a new stream when its stream ends. The new stream must not get this connection.
    if !self.streams.isEmpty { self.announceEnd() }
    self.end(error)
  }

  private func announceEnd() {
    guard !self.isDraining else { return }
    self.isDraining = true
    self.delegate?.connectionWillClose(self)
  }

  private func closeIfFinished() {
    if self.isDraining, self.streams.isEmpty { self.end(nil) }
  }

  /// - Parameter error: Why it ends; nil for an orderly end.
  private func end(_ error: ConnectError?) {
    guard let delegate = self.delegate.take() else { return }
    self.isDraining = true
    self.network.forget(self.route.number)
    // In the order in which they were started.
    let streams = self.streams.sorted { $0.number < $1.number }
    self.streams = []
    for stream in streams {
      if let error { stream.connectionWasLost(error) }
      delegate.connectionDidCloseStream(self)
    }
    delegate.connectionDidClose(self, error: error)
  }
}

extension HTTPStreamFailure {
  /// The stream came after the last one that a server takes before it renews the connection.
  fileprivate static var goAway: HTTPStreamFailure {
    var failure = HTTPStreamFailure(
      error: ConnectError(
        code: .unavailable,
        message: "the server is going away and did not process the request (GOAWAY)"
      ),
      isUnprocessed: true
    )
    failure.keepsTransparentRetry = true
    return failure
  }
}
