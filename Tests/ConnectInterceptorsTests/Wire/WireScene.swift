import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import XCTest

/// An exchange without sockets, in virtual time: a caller, interceptors, and a peer in place of the transport.
///
/// The caller and the peer check the rules of `HTTPStream` and `HTTPStreamHandler`.
final class WireScene {
  let executor = VirtualExecutor()
  let peer: WirePeer
  let caller: WireCaller
  private let client: WireHTTPClient

  init(_ interceptors: [WireInterceptorFactory], limits: WireLimits = .defaults) {
    self.peer = WirePeer(self.executor)
    self.caller = WireCaller()
    self.client = WireHTTPClient(self.peer, interceptors: interceptors, limits: limits)
  }

  /// Starts an exchange with a streamed body.
  @discardableResult
  func start(_ change: (inout HTTPStreamRequest) -> Void = { _ in }) throws -> WireScene {
    var request = HTTPStreamRequest(method: .post, target: "/s/m", headers: ["x-a": ["1"]], body: .streamed)
    change(&request)
    let origin = Origin(scheme: .http, host: "wire.test", port: 80)
    let endpoint = try self.client.endpoint(for: origin, on: nil, requiresHTTP2: false)
    self.run {
      self.caller.inside { self.caller.stream = endpoint.startStream(request, handler: self.caller) }
    }
    return self
  }

  /// Runs `work` on the executor, and all that follows from it.
  func run(_ work: () -> Void = {}) {
    self.executor.sync(work)
    self.executor.runUntilIdle()
  }

  /// Lets something happen that another thread causes.
  func wait(_ what: String, until condition: () -> Bool) {
    for _ in 0..<30_000 where !condition() {
      self.executor.runUntilIdle()
      usleep(1000)
    }
    XCTAssertTrue(condition(), what)
  }

  // MARK: The caller

  func write(_ text: String) { self.run { self.caller.write(ByteBuffer(string: text)) } }

  func finish(_ trailers: Headers = Headers()) {
    self.run { self.caller.inside { self.caller.stream?.finish(trailers: trailers) } }
  }

  func consume(_ count: Int) { self.run { self.caller.inside { self.caller.stream?.consume(count) } } }

  func cancel() { self.run { self.caller.inside { self.caller.stream?.cancel() } } }

  func expire() { self.run { self.caller.inside { self.caller.stream?.expire() } } }

  // MARK: The peer

  var stream: WirePeer.Stream? { self.peer.streams.last }

  func respond(_ status: Int = 200) {
    self.run { self.stream?.handler?.streamDidReceive(HTTPResponseHead(status: status, headers: [:])) }
  }

  func receive(_ texts: String...) {
    for text in texts {
      self.run {
        self.stream?.deliveredBytes += text.utf8.count
        self.stream?.handler?.streamDidReceive(ByteBuffer(string: text))
      }
    }
  }

  func becomeWritable() { self.run { self.stream?.handler?.streamDidBecomeWritable() } }

  func end(_ trailers: Headers = Headers()) {
    self.run { self.stream?.takeHandler()?.streamDidEnd(trailers: trailers) }
  }

  func fail(_ failure: HTTPStreamFailure) {
    self.run { self.stream?.takeHandler()?.streamDidFail(failure) }
  }
}

/// A transport that does what a test says.
///
/// Confined to the executor, except for reads by a test after `runUntilIdle()`.
final class WirePeer: HTTPClientInterface, HTTPEndpoint, @unchecked Sendable {
  final class Stream: HTTPStream {
    let request: HTTPStreamRequest
    fileprivate(set) var handler: (any HTTPStreamHandler)?
    /// What the request's side got: `write …`, `finish …`, `cancel`, `expire`.
    private(set) var events: [String] = []
    private(set) var body = ByteBuffer()
    private(set) var isFinished = false
    private(set) var consumedBytes = 0
    var deliveredBytes = 0
    var onWrite: ((Int) -> Void)?

    init(_ request: HTTPStreamRequest, _ handler: any HTTPStreamHandler) {
      self.request = request
      self.handler = handler
    }

    func takeHandler() -> (any HTTPStreamHandler)? { self.handler.take() }

    func write(_ bytes: ByteBuffer) {
      XCTAssertFalse(self.isFinished, "a chunk behind the end")
      XCTAssertGreaterThan(bytes.readableBytes, 0)
      self.events.append("write \(String(buffer: bytes))")
      self.body.writeImmutableBuffer(bytes)
      self.onWrite?(bytes.readableBytes)
    }

    func finish(trailers: Headers) {
      XCTAssertFalse(self.isFinished, "two ends")
      self.isFinished = true
      self.events.append("finish" + trailers.map { " \($0.name)=\($0.value)" }.joined())
    }

    func consume(_ count: Int) {
      guard self.handler != nil else { return }
      self.consumedBytes += count
      XCTAssertLessThanOrEqual(self.consumedBytes, self.deliveredBytes, "more consumed than delivered")
    }

    func cancel() { self.giveUp("cancel") }
    func expire() { self.giveUp("expire") }

    private func giveUp(_ name: String) {
      XCTAssertNotNil(self.handler, "\(name) after the end")
      self.handler = nil
      self.events.append(name)
    }
  }

  let executor: any CallExecutor
  private(set) var streams: [Stream] = []
  var onStart: ((Stream) -> Void)?

  init(_ executor: VirtualExecutor) {
    self.executor = executor
  }

  var maximumHeaderListSize: Int { 1234 }
  var authenticatesClient: Bool { false }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint { self }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = Stream(request, handler)
    self.streams.append(stream)
    self.onStart?(stream)
    return stream
  }
}

/// The call's side of an exchange.
final class WireCaller: HTTPStreamHandler {
  fileprivate(set) var stream: (any HTTPStream)?
  /// What the call heard: `start`, `writable`, `200`, `chunk …`, `end …`, `failed …`.
  private(set) var events: [String] = []
  private(set) var body = ByteBuffer()
  private(set) var failure: HTTPStreamFailure?
  private(set) var isOver = false
  private var hasHead = false
  private var isInside = false
  /// Called with the size of each chunk.
  var onChunk: ((Int) -> Void)?
  var onWritable: (() -> Void)?

  /// Calls a function of the stream.
  func inside(_ body: () -> Void) {
    let wasInside = self.isInside
    self.isInside = true
    body()
    self.isInside = wasInside
  }

  func write(_ bytes: ByteBuffer) { self.inside { self.stream?.write(bytes) } }

  private func hear(_ event: String) {
    XCTAssertFalse(self.isInside, "\(event) within a function of the stream")
    XCTAssertFalse(self.isOver, "\(event) after the end")
    self.events.append(event)
  }

  func streamDidStart(on connection: HTTPConnectionInfo) { self.hear("start") }

  func streamDidBecomeWritable() {
    self.hear("writable")
    self.onWritable?()
  }

  func streamDidReceive(_ head: HTTPResponseHead) {
    XCTAssertFalse(self.hasHead, "two heads")
    self.hasHead = true
    self.hear("\(head.status)")
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    XCTAssertTrue(self.hasHead, "a chunk before the head")
    XCTAssertGreaterThan(bytes.readableBytes, 0)
    self.hear("chunk \(String(buffer: bytes))")
    self.body.writeImmutableBuffer(bytes)
    self.onChunk?(bytes.readableBytes)
  }

  func streamDidEnd(trailers: Headers) {
    XCTAssertTrue(self.hasHead, "an end before the head")
    self.hear("end" + trailers.map { " \($0.name)=\($0.value)" }.joined())
    self.isOver = true
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.hear("failed \(failure.error.code.name)")
    self.failure = failure
    self.isOver = true
  }
}

/// What interceptors of a test have noted, in order.
final class WireNotes: @unchecked Sendable {
  var notes: [String] = []
  var proceeds: [() -> Void] = []

  func add(_ note: String) { self.notes.append(note) }

  func keep(_ proceed: @escaping () -> Void) { self.proceeds.append(proceed) }

  /// An interceptor that notes all it sees, and passes it on.
  func watcher(_ name: String) -> WireInterceptorFactory {
    { _ in
      WireFunction(
        requestHeadFunction: { request, proceed in
          self.add("\(name) > head")
          proceed(request)
        },
        requestChunkFunction: { bytes, proceed in
          self.add("\(name) > \(String(buffer: bytes))")
          proceed(bytes)
        },
        requestEndFunction: { trailers, proceed in
          self.add("\(name) > end")
          proceed(trailers)
        },
        connectionFunction: { _ in self.add("\(name) = connection") },
        responseHeadFunction: { head, proceed in
          self.add("\(name) < head")
          proceed(head)
        },
        responseChunkFunction: { bytes, proceed in
          self.add("\(name) < \(String(buffer: bytes))")
          proceed(bytes)
        },
        responseEndFunction: { trailers, proceed in
          self.add("\(name) < end")
          proceed(trailers)
        },
        failureFunction: { failure, proceed in
          self.add("\(name) < failure")
          proceed(failure)
        },
        endFunction: { outcome in self.add("\(name) \(outcome.word)") }
      )
    }
  }
}

extension WireOutcome {
  var word: String {
    switch self {
    case .completed: "completed"
    case .failed: "failed"
    case .cancelled: "cancelled"
    case .expired: "expired"
    }
  }
}
