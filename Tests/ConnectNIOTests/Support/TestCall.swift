import Connect
import NIOCore
import XCTest

/// One stream, driven by a test: starts it on the endpoint's executor and records the handler's events.
///
/// `@unchecked Sendable`: everything but the promises is touched on the endpoint's executor alone.
final class TestCall: HTTPStreamHandler, @unchecked Sendable {
  struct Response: Sendable {
    var head: Connect.HTTPResponseHead
    var body: ByteBuffer
    var trailers: Headers

    var text: String { String(buffer: self.body) }
  }

  enum Outcome: Sendable {
    case response(Response)
    case failure(HTTPStreamFailure)
  }

  private let endpoint: any HTTPEndpoint
  private let eventLoop: any EventLoop
  private let consumesAtOnce: Bool
  private var stream: (any HTTPStream)?
  private var isInsideCall = false
  private var isDone = false

  private var info: HTTPConnectionInfo?
  private var head: Connect.HTTPResponseHead?
  private var body = ByteBuffer()
  private var received = 0
  private var writableCount = 0
  private var onWritable: (@Sendable (TestCall) -> Void)?
  private var onEnd: (@Sendable () -> Void)?
  private var waiters: [(condition: (TestCall) -> Bool, promise: EventLoopPromise<Void>)] = []

  private let ended: EventLoopPromise<Outcome>

  init(
    _ endpoint: any HTTPEndpoint,
    on eventLoop: any EventLoop,
    consumesAtOnce: Bool = true
  ) {
    self.endpoint = endpoint
    self.eventLoop = eventLoop
    self.consumesAtOnce = consumesAtOnce
    self.ended = eventLoop.makePromise()
  }

  // MARK: Driving

  @discardableResult
  func start(
    _ method: HTTPStreamRequest.Method = .post,
    _ target: String = "/test",
    headers: Headers = [:],
    authority: String? = nil,
    body: HTTPStreamRequest.Body = .complete(ByteBuffer(string: "ping"))
  ) -> TestCall {
    self.endpoint.executor.run {
      self.inside {
        var request = HTTPStreamRequest(method: method, target: target, headers: headers, body: body)
        request.authority = authority
        self.stream = self.endpoint.startStream(request, handler: self)
      }
    }
    return self
  }

  func write(_ text: String) {
    self.write(ByteBuffer(string: text))
  }

  func write(_ bytes: ByteBuffer) {
    self.endpoint.executor.run { self.inside { self.stream?.write(bytes) } }
  }

  func finish(trailers: Headers = [:]) {
    self.endpoint.executor.run { self.inside { self.stream?.finish(trailers: trailers) } }
  }

  func consume(_ count: Int) {
    self.endpoint.executor.run { self.inside { self.stream?.consume(count) } }
  }

  func cancel() {
    self.endpoint.executor.run {
      self.inside { self.stream?.cancel() }
      // No more events may follow.
      self.isDone = true
    }
  }

  func onWritable(_ action: @escaping @Sendable (TestCall) -> Void) -> TestCall {
    self.onWritable = action
    return self
  }

  /// Runs inside the callback that reports the end of the response.
  func onEnd(_ action: @escaping @Sendable () -> Void) -> TestCall {
    self.onEnd = action
    return self
  }

  private func inside(_ work: () -> Void) {
    self.isInsideCall = true
    work()
    self.isInsideCall = false
  }

  // MARK: Results

  func outcome() async throws -> Outcome {
    try await self.ended.futureResult.get()
  }

  func response(file: StaticString = #filePath, line: UInt = #line) async throws -> Response {
    switch try await self.outcome() {
    case .response(let response):
      return response
    case .failure(let failure):
      XCTFail("failed: \(failure.error)", file: file, line: line)
      throw failure.error
    }
  }

  func failure(file: StaticString = #filePath, line: UInt = #line) async throws -> HTTPStreamFailure {
    switch try await self.outcome() {
    case .failure(let failure):
      return failure
    case .response(let response):
      XCTFail("unexpected response: \(response.head) \(response.text)", file: file, line: line)
      throw CancellationError()
    }
  }

  /// The number of body bytes so far.
  func receivedCount() async throws -> Int {
    try await self.eventLoop.submit { self.received }.get()
  }

  func connectionInfo() async throws -> HTTPConnectionInfo? {
    try await self.eventLoop.submit { self.info }.get()
  }

  func becomesTrue(_ condition: @escaping @Sendable (TestCall) -> Bool) async throws {
    try await self.eventLoop.flatSubmit {
      let promise = self.eventLoop.makePromise(of: Void.self)
      self.waiters.append((condition, promise))
      self.checkWaiters()
      return promise.futureResult
    }.get()
  }

  func hasHead() async throws { try await self.becomesTrue { $0.head != nil } }
  func hasStarted() async throws { try await self.becomesTrue { $0.info != nil } }
  func hasReceived(_ count: Int) async throws { try await self.becomesTrue { $0.received >= count } }
  func wasWritable(times: Int) async throws { try await self.becomesTrue { $0.writableCount >= times } }

  private func checkWaiters() {
    let met = self.waiters.filter { $0.condition(self) }
    self.waiters.removeAll { $0.condition(self) }
    for waiter in met { waiter.promise.succeed(()) }
  }

  // MARK: HTTPStreamHandler

  private func check(_ what: String) {
    self.eventLoop.preconditionInEventLoop()
    XCTAssertFalse(self.isInsideCall, "\(what) from within a function of the stream")
    XCTAssertFalse(self.isDone, "\(what) after the end")
  }

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.check("start")
    XCTAssertNil(self.info, "started twice")
    XCTAssertNil(self.head)
    self.info = connection
    self.checkWaiters()
  }

  func streamDidBecomeWritable() {
    self.check("writable")
    self.writableCount += 1
    self.onWritable?(self)
    self.checkWaiters()
  }

  func streamDidReceive(_ head: Connect.HTTPResponseHead) {
    self.check("head")
    XCTAssertNotNil(self.info, "head before start")
    XCTAssertNil(self.head, "two heads")
    self.head = head
    self.checkWaiters()
  }

  func streamDidReceive(_ bytes: ByteBuffer) {
    self.check("bytes")
    XCTAssertNotNil(self.head, "body before head")
    XCTAssertGreaterThan(bytes.readableBytes, 0)
    self.received += bytes.readableBytes
    if self.consumesAtOnce {
      var bytes = bytes
      self.body.writeBuffer(&bytes)
      self.inside { self.stream?.consume(bytes.writerIndex) }
    }
    self.checkWaiters()
  }

  func streamDidEnd(trailers: Headers) {
    self.check("end")
    self.isDone = true
    guard let head = self.head else {
      XCTFail("end without head")
      return
    }
    self.ended.succeed(.response(Response(head: head, body: self.body, trailers: trailers)))
    self.onEnd?()
    self.checkWaiters()
  }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.check("failure")
    self.isDone = true
    self.ended.succeed(.failure(failure))
    self.checkWaiters()
  }

  deinit {
    self.ended.fail(CancellationError())
    for waiter in self.waiters { waiter.promise.fail(CancellationError()) }
  }
}
