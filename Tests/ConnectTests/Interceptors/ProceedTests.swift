import Connect
import ConnectTesting
import Logging
import NIOCore
import Synchronization
import XCTest

/// `proceed` called twice, late, or never.
final class ProceedTests: XCTestCase {
  func testMadeFromAClosure() {
    let verbs = Box<[RequestVerb<HTTPRequest<Text>, ResponseMessage<Text>>]>([])
    let proceed = Proceed<RequestVerb<HTTPRequest<Text>, ResponseMessage<Text>>> {
      verbs.value = verbs.value + [$0]
    }
    proceed(.failure(ConnectError(code: .aborted)))
    proceed.answer(ResponseMessage(message: "a"))
    guard case .proceed(.failure(let error)) = verbs.value.first, case .answer(let answer) = verbs.value.last
    else {
      XCTFail("\(verbs.value)")
      return
    }
    XCTAssertEqual(error.code, .aborted)
    XCTAssertEqual(answer.message, "a")
    for verb in verbs.value { proceed.send(verb) }
    XCTAssertEqual(verbs.value.count, 4)
  }

  func testCalledTwiceIsIgnoredAndLogged() async {
    let log = Events()
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryMessages = UnaryMessageFunction(
            requestFunction: { request, proceed in
              proceed(.success(request))
              proceed(.success(request))
              proceed(.failure(ConnectError(code: .aborted)))
            },
            responseFunction: { response, proceed in
              proceed(response)
              proceed(ResponseMessage(error: ConnectError(code: .aborted)))
              proceed.retry()
            }
          )
        }
      ]
    ) { $0.logger = Logger(label: "test") { _ in EventLogHandler(events: log) } }
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.count, 1)
    XCTAssertEqual(log.all.count, 4)
    XCTAssertTrue(log.all.allSatisfy { $0.contains("ignored") }, "\(log.all)")
  }

  func testCalledTwiceInStreamsIsIgnored() async throws {
    let log = Events()
    let transport = ScriptedTransport { stream in
      stream.onFinish = { stream in
        stream.respondStream()
        for message in stream.sentMessages { stream.sendMessage(message) }
        stream.endStream()
      }
    }
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages = StreamMessageFunction(
            requestFunction: { request, proceed in
              proceed(.success(request))
              proceed(.failure(ConnectError(code: .aborted)))
            },
            requestMessageFunction: { message, proceed in
              proceed(message)
              proceed(message)
              proceed.drop()
            },
            streamResultFunction: { result, proceed in
              proceed(result)
              proceed(result)
            }
          )
        }
      ]
    ) { $0.logger = Logger(label: "test") { _ in EventLogHandler(events: log) } }
    var received: [Text] = []
    for try await message in client.serverStream(.serverStream, "a").messages { received.append(message) }
    XCTAssertEqual(received, ["a"])
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(log.all.count, 1 + 2 + 3)
  }

  func testFailingTwiceInAStreamIsIgnored() async {
    let transport = ScriptedTransport.silent()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.streamMessages.requestFunction = { request, proceed in
            proceed(.failure(ConnectError(code: .aborted)))
            proceed(.success(request))
            proceed(.failure(ConnectError(code: .dataLoss)))
            proceed.answer(StreamAnswer(messages: ["no"]))
          }
        }
      ]
    )
    var results: [String] = []
    for await result in client.serverStream(.serverStream, "a").results { results.append(result.short) }
    XCTAssertEqual(results, ["end aborted"])
    XCTAssertEqual(transport.streams.count, 0)
  }

  // MARK: Never

  func testNeverCalledEndsAtTheDeadlineOnceAndLeavesNothing() async {
    let transport = ScriptedTransport.echo()
    let weak = WeakReference()
    let client = ProtocolClient.scripted(transport, interceptors: [weak.keepingFactory], timeout: .seconds(1))
    let outcome = client.outcome(of: "x").outcome
    transport.virtualExecutor.runUntilIdle()
    XCTAssertNotNil(weak.object)
    transport.virtualExecutor.advance(by: .seconds(1))
    let response = await outcome.wait()
    XCTAssertEqual(response.error?.code, .deadlineExceeded)
    XCTAssertEqual(outcome.count, 0)
    XCTAssertNil(weak.object)
  }

  func testNeverCalledEndsByCancellationOnceAndLeavesNothing() async {
    let transport = ScriptedTransport.echo()
    let weak = WeakReference()
    let client = ProtocolClient.scripted(transport, interceptors: [weak.keepingFactory])
    let (handle, outcome) = client.outcome(of: "x")
    transport.virtualExecutor.runUntilIdle()
    handle.cancel()
    handle.cancel()
    let response = await outcome.wait()
    XCTAssertEqual(response.error?.code, .canceled)
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(outcome.count, 0)
    XCTAssertNil(weak.object)
  }

  func testDroppedUncalledWithNobodyLeftFailsAndOuterHooksAreTold() async {
    let probe = InterceptorProbe()
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        probe.factory("A"),
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.requestFunction = { _, proceed in Task.detached { _ = proceed } }
        },
      ]
    )
    let outcome = client.outcome(of: "x").outcome
    let response = await outcome.wait()
    XCTAssertEqual(response.error?.code, .internalError)
    XCTAssertEqual(
      probe.events.outline,
      ["A message request", "A byte request", "A byte response internal", "A message response internal"]
    )
  }

  /// The task that would have run async interceptors ends, and lets go of the caller's task-local values.
  func testDroppedUncalledEndsTheTaskForAsyncInterceptors() async {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { $0.unaryMessages.requestFunction = { _, _ in } },
        TestAsyncInterceptor.unary { request, next in try await next(request) },
      ]
    )
    let released = Signal<Void>()
    let ended = Signal<Code>()
    TaskLocalToken.$current.withValue(TaskLocalToken { released.fire(()) }) {
      _ = client.unary(.unary, "x") { ended.fire($0.code) }
    }
    let code = await ended.wait()
    XCTAssertEqual(code, .internalError)
    await released.wait()
  }

  func testDroppedUncalledInACallbackStreamCompletesSendsToo() async {
    let transport = ScriptedTransport.echo()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [TestInterceptor.make { $0.streamMessages.requestFunction = { _, _ in } }]
    )
    let results = Signal<StreamResult<Text>>()
    let sent = Signal<ConnectError?>()
    do {
      let handle = client.bidirectionalStream(.bidirectional) { results.fire($0) }
      handle.send("x") { sent.fire($0) }
    }
    let result = await results.wait()
    XCTAssertEqual(result.short, "end internal")
    let error = await sent.wait()
    XCTAssertEqual(error?.code, .failedPrecondition)
  }

  func testLateProceedAfterTheCallIsOver() async {
    let kept = Box<[@Sendable () -> Void]>([])
    let transport = ScriptedTransport.echo()
    let keeping = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.requestFunction = { request, proceed in
        kept.value =
          kept.value + [{ proceed(.success(request)) }, { proceed.answer(ResponseMessage(message: "")) }]
      }
      interceptor.streamMessages.requestFunction = { request, proceed in
        kept.value =
          kept.value + [{ proceed(.success(request)) }, { proceed(.failure(ConnectError(code: .aborted))) }]
      }
    }
    do {
      let client = ProtocolClient.scripted(transport, interceptors: [keeping], timeout: .seconds(1))
      let outcome = client.outcome(of: "x").outcome
      let results = Signal<StreamResult<Text>>()
      client.serverStream(.serverStream, "x") { results.fire($0) }
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(1))
      _ = await outcome.wait()
      _ = await results.wait()
    }
    XCTAssertEqual(kept.value.count, 4)
    for late in kept.exchange([]) { late() }
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(transport.streams.count, 0)
  }

  func testCancellingInsideHooks() async {
    for place in ["response", "bytes request", "bytes response", "metrics"] {
      let handle = Box<CallHandle?>(nil)
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          TestInterceptor.make { interceptor in
            let cancel: @Sendable (String) -> Void = { if $0 == place { handle.value?.cancel() } }
            interceptor.unaryMessages = UnaryMessageFunction(
              responseFunction: { response, proceed in
                cancel("response")
                proceed(response)
              }
            )
            interceptor.unaryBytes = UnaryFunction(
              requestFunction: { request, proceed in
                cancel("bytes request")
                proceed(.success(request))
              },
              responseFunction: { response, proceed in
                cancel("bytes response")
                proceed(response)
              },
              responseMetricsFunction: { metrics, proceed in
                cancel("metrics")
                proceed(metrics)
              }
            )
          }
        ]
      )
      let outcome = Signal<ResponseMessage<Text>>()
      // Lets the call go on once its handle is there.
      let gate = TestInterceptor.make { interceptor in
        interceptor.unaryMessages.requestFunction = { request, proceed in
          transport.virtualExecutor.execute { proceed(.success(request)) }
        }
      }
      transport.virtualExecutor.sync {
        handle.value = client.unary(
          .unary,
          "x",
          options: CallOptions(interceptors: [gate])
        ) { outcome.fire($0) }
      }
      let response = await outcome.wait()
      XCTAssertEqual(response.code, .canceled, place)
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(outcome.count, 0)
      handle.value = nil
    }
  }
}

/// An interceptor that keeps every `proceed` in itself, and whether it is still there.
final class WeakReference: Sendable {
  private let reference = Mutex<Weak>(Weak())

  private struct Weak {
    weak var object: KeepingInterceptor?
  }

  var object: KeepingInterceptor? { self.reference.withLock { $0.object } }

  var keepingFactory: InterceptorFactory {
    { _ in
      let interceptor = KeepingInterceptor()
      self.reference.withLock { $0.object = interceptor }
      return interceptor
    }
  }
}

/// Keeps every `proceed` of its request hooks and never calls one. Used on one executor only.
final class KeepingInterceptor: Interceptor, @unchecked Sendable {
  private var kept: [Any] = []

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(requestFunction: { _, proceed in self.kept.append(proceed) })
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(requestFunction: { _, proceed in self.kept.append(proceed) })
  }
}

/// Writes messages down.
struct EventLogHandler: LogHandler {
  let events: Events
  var metadata: Logger.Metadata = [:]
  var logLevel: Logger.Level = .trace

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { self.metadata[key] }
    set { self.metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    self.events.add("\(event.message)")
  }
}

/// Tells when nothing holds it any more.
private final class TaskLocalToken: Sendable {
  @TaskLocal static var current: TaskLocalToken?

  private let onEnd: @Sendable () -> Void

  init(onEnd: @escaping @Sendable () -> Void) {
    self.onEnd = onEnd
  }

  deinit {
    self.onEnd()
  }
}
