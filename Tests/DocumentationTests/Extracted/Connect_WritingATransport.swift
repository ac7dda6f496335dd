// Extracted from Sources/Connect/Connect.docc/WritingATransport.md by `make generate`.

import Connect
import Dispatch
import NIOCore
import SwiftProtobuf
import Synchronization
import XCTest

final class MeteredTransport: HTTPClientInterface {
  let meter = ByteMeter()
  private let base: any HTTPClientInterface

  init(_ base: any HTTPClientInterface) {
    self.base = base
  }

  var authenticatesClient: Bool { self.base.authenticatesClient }
  var executors: [any CallExecutor] { self.base.executors }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    let endpoint = try self.base.endpoint(for: origin, on: executor, requiresHTTP2: requiresHTTP2)
    return MeteredEndpoint(endpoint, self.meter)
  }
}

final class ByteMeter: Sendable {
  let received = Atomic<Int>(0)
}

final class MeteredEndpoint: HTTPEndpoint {
  private let base: any HTTPEndpoint
  private let meter: ByteMeter

  init(_ base: any HTTPEndpoint, _ meter: ByteMeter) {
    self.base = base
    self.meter = meter
  }

  var executor: any CallExecutor { self.base.executor }
  var maximumHeaderListSize: Int { self.base.maximumHeaderListSize }
  // What the inner endpoint knows of its service, such as a service config, holds for calls over this one, too.
  var underlying: (any HTTPEndpoint)? { self.base }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    self.base.startStream(request, handler: MeteredHandler(handler, self.meter))
  }
}

final class MeteredHandler: HTTPStreamHandler {
  private let base: any HTTPStreamHandler
  private let meter: ByteMeter

  init(_ base: any HTTPStreamHandler, _ meter: ByteMeter) {
    self.base = base
    self.meter = meter
  }

  func streamDidStart(on connection: HTTPConnectionInfo) { self.base.streamDidStart(on: connection) }
  func streamDidBecomeWritable() { self.base.streamDidBecomeWritable() }
  func streamDidReceive(_ head: HTTPResponseHead) { self.base.streamDidReceive(head) }

  func streamDidReceive(_ bytes: ByteBuffer) {
    self.meter.received.add(bytes.readableBytes, ordering: .relaxed)
    self.base.streamDidReceive(bytes)
  }

  func streamDidEnd(trailers: Headers) { self.base.streamDidEnd(trailers: trailers) }
  func streamDidFail(_ failure: HTTPStreamFailure) { self.base.streamDidFail(failure) }
}

/// Where calls live: a serial queue.
final class QueueExecutor: CallExecutor {
  private let queue: DispatchQueue
  private let key = DispatchSpecificKey<Bool>()
  private let start = ContinuousClock.now

  init() {
    self.queue = DispatchQueue(label: "calls")
    self.queue.setSpecific(key: self.key, value: true)
  }

  var now: Duration { self.start.duration(to: .now) }
  var isCurrent: Bool { DispatchQueue.getSpecific(key: self.key) ?? false }

  func execute(_ work: @escaping @Sendable () -> Void) {
    self.queue.async(execute: work)
  }

  func schedule(after delay: Duration, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    let timer = QueueTimer()
    let nanoseconds = min(max(delay / .nanoseconds(1), 0), Double(Int32.max) * 1e9)
    self.queue.asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds))) {
      if !timer.isCancelled.load(ordering: .relaxed) { work() }
    }
    return timer
  }
}

final class QueueTimer: CallTimer {
  let isCancelled = Atomic(false)

  func cancel() { self.isCancelled.store(true, ordering: .relaxed) }
}

final class CannedTransport: HTTPClientInterface {
  private let canned: CannedEndpoint

  init(contentType: String, body: ByteBuffer) {
    self.canned = CannedEndpoint(contentType: contentType, body: body)
  }

  // It shows nobody who the client is.
  var authenticatesClient: Bool { false }

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    guard executor == nil || executor === self.canned.executor else {
      throw ConnectError(code: .invalidArgument, message: "the executor is of another transport")
    }
    return self.canned
  }
}

final class CannedEndpoint: HTTPEndpoint {
  let executor: any CallExecutor = QueueExecutor()
  let contentType: String
  let body: ByteBuffer

  init(contentType: String, body: ByteBuffer) {
    self.contentType = contentType
    self.body = body
  }

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    let stream = CannedStream(self, handler)
    // Never from within this function: the handler expects to hear of its stream afterwards.
    self.executor.execute { stream.start() }
    if case .complete = request.body { self.executor.execute { stream.respond() } }
    return stream
  }
}

/// `@unchecked Sendable`: all functions are called on the executor of the endpoint.
final class CannedStream: HTTPStream, @unchecked Sendable {
  private let endpoint: CannedEndpoint
  private var handler: (any HTTPStreamHandler)?

  init(_ endpoint: CannedEndpoint, _ handler: any HTTPStreamHandler) {
    self.endpoint = endpoint
    self.handler = handler
  }

  func start() {
    self.handler?.streamDidStart(on: HTTPConnectionInfo(version: .http2, isReused: true))
  }

  func respond() {
    let headers: Headers = ["content-type": [self.endpoint.contentType]]
    self.handler?.streamDidReceive(HTTPResponseHead(status: 200, headers: headers))
    // What comes here is read again each time: the call may have cancelled the stream meanwhile.
    self.handler?.streamDidReceive(self.endpoint.body)
    let handler = self.handler
    self.handler = nil
    handler?.streamDidEnd(trailers: Headers())
  }

  func write(_ bytes: ByteBuffer) {
    self.endpoint.executor.execute { self.handler?.streamDidBecomeWritable() }
  }

  func finish(trailers: Headers) {
    self.endpoint.executor.execute { self.respond() }
  }

  // One body, which is in memory anyhow: nobody has to be held back.
  func consume(_ count: Int) {}

  func cancel() { self.handler = nil }
}

final class CannedTransportTests: XCTestCase {
  func testAnswers() async throws {
    let message = Connectrpc_Eliza_V1_SayResponse.with { $0.sentence = "canned" }
    let body = ByteBuffer(bytes: try message.serializedBytes() as [UInt8])
    let transport = MeteredTransport(CannedTransport(contentType: "application/proto", body: body))
    let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "http://canned"))

    let answer = try await Connectrpc_Eliza_V1_ElizaServiceClient(client: client).say(.init())

    XCTAssertEqual(answer.sentence, "canned")
    XCTAssertEqual(transport.meter.received.load(ordering: .relaxed), body.readableBytes)
  }
}
