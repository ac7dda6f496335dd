import Connect
import ConnectTesting
import NIOCore
import XCTest

/// A hook that lets go of its `proceed` uncalled ends the call, whoever waits for it.
final class DroppedProceedTests: XCTestCase {
  private enum Hook: String, CaseIterable {
    case messageRequest, messageResponse, byteRequest, byteResponse

    var held: String {
      switch self {
      case .messageRequest, .byteRequest: "the request"
      case .messageResponse, .byteResponse: "the response"
      }
    }

    /// An interceptor whose hook calls `body` with its `proceed`, as anything.
    func interceptor(_ body: @escaping @Sendable (any Sendable) -> Void) -> InterceptorFactory {
      TestInterceptor.make { interceptor in
        switch self {
        case .messageRequest: interceptor.unaryMessages.requestFunction = { body($1) }
        case .messageResponse: interceptor.unaryMessages.responseFunction = { body($1) }
        case .byteRequest: interceptor.unaryBytes.requestFunction = { body($1) }
        case .byteResponse: interceptor.unaryBytes.responseFunction = { body($1) }
        }
      }
    }
  }

  private enum StreamHook: String, CaseIterable {
    case messageHead, message, messageResult, byteHead, bytes, byteResult

    var held: String {
      switch self {
      case .messageHead, .byteHead: "the request"
      case .message, .bytes: "a request message"
      case .messageResult, .byteResult: "the response"
      }
    }

    func interceptor(_ body: @escaping @Sendable (any Sendable) -> Void) -> InterceptorFactory {
      TestInterceptor.make { interceptor in
        switch self {
        case .messageHead: interceptor.streamMessages.requestFunction = { body($1) }
        case .message: interceptor.streamMessages.requestMessageFunction = { body($1) }
        case .messageResult: interceptor.streamMessages.streamResultFunction = { body($1) }
        case .byteHead: interceptor.streamBytes.requestFunction = { body($1) }
        case .bytes: interceptor.streamBytes.requestMessageFunction = { body($1) }
        case .byteResult: interceptor.streamBytes.streamResultFunction = { body($1) }
        }
      }
    }
  }

  private static let echoing: ScriptedTransport.Script = { stream in
    stream.onFinish = { stream in
      stream.respondStream()
      for message in stream.sentMessages { stream.sendMessage(message) }
      stream.endStream()
    }
  }

  /// Lets go at once, and later in a task.
  private static let lettingGo: [@Sendable (any Sendable) -> Void] = [
    { _ in },
    { proceed in Task.detached { _ = proceed } },
  ]

  private func assertAbandoned(_ error: ConnectError?, _ held: String, _ message: String) {
    XCTAssertEqual(error?.code, .internalError, message)
    XCTAssertEqual(
      error?.message?.hasPrefix("TestInterceptor has \(held) of /test.Text/"),
      true,
      "\(message): \(error?.message ?? "none")"
    )
  }

  func testAnAsyncCallerOfAUnaryCallIsTold() async {
    for hook in Hook.allCases {
      for (index, letGo) in Self.lettingGo.enumerated() {
        let client = ProtocolClient.scripted(.echo(), interceptors: [hook.interceptor(letGo)])
        let response = await client.unary(.unary, "x")
        self.assertAbandoned(response.error, hook.held, "\(hook) \(index)")
      }
    }
  }

  func testACallbackIsTold() async {
    for hook in Hook.allCases {
      for (index, letGo) in Self.lettingGo.enumerated() {
        let client = ProtocolClient.scripted(.echo(), interceptors: [hook.interceptor(letGo)])
        let (handle, outcome) = client.outcome(of: "x")
        let response = await outcome.wait()
        self.assertAbandoned(response.error, hook.held, "\(hook) \(index)")
        withExtendedLifetime(handle) {}
      }
    }
  }

  func testAStreamIsTold() async {
    for hook in StreamHook.allCases {
      for (index, letGo) in Self.lettingGo.enumerated() {
        let client = ProtocolClient.scripted(
          ScriptedTransport(Self.echoing),
          interceptors: [hook.interceptor(letGo)]
        )
        let stream = client.serverStream(.serverStream, "a")
        var end: ConnectError?
        for await result in stream.results {
          if case .complete(_, let error, _) = result { end = error }
        }
        self.assertAbandoned(end, hook.held, "\(hook) \(index)")
      }
    }
  }

  func testOuterHooksAreTold() async {
    let probe = InterceptorProbe()
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [probe.factory("A"), Hook.byteResponse.interceptor { _ in }]
    )
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.code, .internalError)
    XCTAssertEqual(
      probe.events.outline,
      ["A message request", "A byte request", "A byte response internal", "A message response internal"]
    )
  }

  /// Somebody else keeps a `proceed` that was called: that does not hide the one that was let go of.
  func testAUsedProceedThatIsKeptHidesNothing() async {
    let kept = Box<[any Sendable]>([])
    let keeping = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.requestFunction = { request, proceed in
        kept.value = kept.value + [proceed]
        proceed(.success(request))
      }
      interceptor.unaryBytes.requestFunction = { request, proceed in
        kept.value = kept.value + [proceed]
        proceed(.success(request))
      }
    }
    for hook in [Hook.byteRequest, .byteResponse, .messageResponse] {
      let client = ProtocolClient.scripted(.echo(), interceptors: [keeping, hook.interceptor { _ in }])
      let response = await client.unary(.unary, "x")
      self.assertAbandoned(response.error, hook.held, "\(hook)")
    }
    XCTAssertEqual(kept.value.count, 6)
  }

  /// An outer hook has called its `proceed` twice: that does not hide the one that an inner hook lets go of.
  func testAProceedThatWasCalledTwiceHidesNothing() async {
    let twice = TestInterceptor.make { interceptor in
      interceptor.unaryMessages.requestFunction = { request, proceed in
        proceed(.success(request))
        proceed(.success(request))
      }
    }
    for hook in [Hook.messageRequest, .byteRequest, .byteResponse, .messageResponse] {
      let client = ProtocolClient.scripted(.echo(), interceptors: [twice, hook.interceptor { _ in }])
      let response = await client.unary(.unary, "x")
      self.assertAbandoned(response.error, hook.held, "\(hook)")
    }
  }

  /// A `proceed` that was called from another thread has not been let go of, whoever releases it last.
  func testCalledElsewhereIsNotLetGoOf() async {
    for _ in 0..<200 {
      let client = ProtocolClient.scripted(
        .echo(),
        interceptors: [
          TestInterceptor.make { interceptor in
            interceptor.unaryMessages.requestFunction = { request, proceed in
              Task.detached { proceed(.success(request)) }
            }
            interceptor.unaryBytes.responseFunction = { response, proceed in
              Task.detached { proceed(response) }
            }
          }
        ]
      )
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
    }
  }

  /// Hooks are told of the call's end with a `proceed` of which nothing comes, and metrics are waited for by nobody.
  func testLettingGoAtTheEndOrOfMetricsIsFine() async {
    let transport = ScriptedTransport.silent()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes = UnaryFunction(
            responseFunction: { _, _ in },
            responseMetricsFunction: { _, _ in }
          )
        }
      ],
      timeout: .seconds(1)
    )
    let outcome = client.outcome(of: "x").outcome
    transport.virtualExecutor.runUntilIdle()
    transport.virtualExecutor.advance(by: .seconds(1))
    let response = await outcome.wait()
    XCTAssertEqual(response.code, .deadlineExceeded)
    transport.virtualExecutor.runUntilIdle()
    XCTAssertEqual(outcome.count, 0)
  }

  // MARK: What a hook keeps

  /// An interceptor that keeps every `proceed` of one kind of hook, called or not, lives no longer than its call.
  func testNoHookLeaksItsCall() async {
    await self.checkThatNoHookLeaksItsCall(inside: [])
  }

  /// The metrics of an attempt go no further than to a hook that lets go of them. What was to come then is released, too.
  func testMetricsThatDoNotGoOnLeakNoCall() async {
    let dropping = TestInterceptor.make { interceptor in
      interceptor.unaryBytes = UnaryFunction(responseMetricsFunction: { _, _ in })
      interceptor.streamBytes = StreamFunction(responseMetricsFunction: { _, _ in })
    }
    await self.checkThatNoHookLeaksItsCall(inside: [dropping])
  }

  /// - Parameter inner: Interceptors inside of the one that keeps what it gets.
  private func checkThatNoHookLeaksItsCall(inside inner: [InterceptorFactory]) async {
    for mode in KeepingHooksInterceptor.Mode.allCases {
      for hook in KeepingHooksInterceptor.Hook.allCases {
        let weak = Box(WeakBox<KeepingHooksInterceptor>())
        let transport = ScriptedTransport { stream in
          if stream.request.headers["content-type"] == ["application/json"] {
            stream.reply(stream.sentMessage)
          } else {
            Self.echoing(stream)
          }
        }
        let client = ProtocolClient.scripted(
          transport,
          interceptors: [
            { _ in
              let interceptor = KeepingHooksInterceptor(hook, mode)
              weak.value = WeakBox(interceptor)
              return interceptor
            }
          ] + inner,
          timeout: .seconds(1)
        )
        if hook.isStream {
          let ended = Signal<Void>()
          do {
            let handle = client.bidirectionalStream(.bidirectional) {
              if case .complete = $0 { ended.fire() }
            }
            handle.send("a")
            handle.finish()
          }
          transport.virtualExecutor.runUntilIdle()
          transport.virtualExecutor.advance(by: .seconds(1))
          await ended.wait()
        } else {
          let outcome = client.outcome(of: "x").outcome
          transport.virtualExecutor.runUntilIdle()
          transport.virtualExecutor.advance(by: .seconds(1))
          _ = await outcome.wait()
        }
        transport.virtualExecutor.runUntilIdle()
        XCTAssertNil(weak.value.object, "\(hook), \(mode)")
      }
    }
  }
}

/// A weak reference that is a value.
struct WeakBox<Object: AnyObject & Sendable>: Sendable {
  weak let object: Object?

  init(_ object: Object? = nil) { self.object = object }
}

/// Keeps every `proceed` of one of its hooks. Used on one executor only.
final class KeepingHooksInterceptor: Interceptor, @unchecked Sendable {
  enum Hook: CaseIterable {
    case messageRequest, messageResponse, byteRequest, byteResponse, metrics
    case streamHead, streamMessage, streamResult, streamByteHead, streamBytes, streamByteResult, streamMetrics

    var isStream: Bool {
      switch self {
      case .messageRequest, .messageResponse, .byteRequest, .byteResponse, .metrics: false
      default: true
      }
    }
  }

  enum Mode: CaseIterable {
    /// Keeps it uncalled.
    case uncalled
    /// Calls it at once, and keeps it.
    case called
    /// Calls it later, and keeps it.
    case calledLater
  }

  private let hook: Hook
  private let mode: Mode
  private var kept: [Any] = []

  init(_ hook: Hook, _ mode: Mode) {
    (self.hook, self.mode) = (hook, mode)
  }

  private func visit<Verb>(_ hook: Hook, _ proceed: Proceed<Verb>, _ verb: Verb) {
    guard hook == self.hook else { return proceed.send(verb) }
    self.kept.append(proceed)
    switch self.mode {
    case .uncalled: break
    case .called: proceed.send(verb)
    case .calledLater: Task.detached { proceed.send(verb) }
    }
  }

  func unaryFunction() -> UnaryFunction {
    UnaryFunction(
      requestFunction: { self.visit(.byteRequest, $1, .proceed(.success($0))) },
      responseFunction: { self.visit(.byteResponse, $1, .proceed($0)) },
      responseMetricsFunction: { self.visit(.metrics, $1, $0) }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(
      requestFunction: { self.visit(.messageRequest, $1, .proceed(.success($0))) },
      responseFunction: { self.visit(.messageResponse, $1, .proceed($0)) }
    )
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { self.visit(.streamByteHead, $1, .proceed(.success($0))) },
      requestMessageFunction: { self.visit(.streamBytes, $1, .proceed($0)) },
      streamResultFunction: { self.visit(.streamByteResult, $1, .proceed($0)) },
      responseMetricsFunction: { self.visit(.streamMetrics, $1, $0) }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { self.visit(.streamHead, $1, .proceed(.success($0))) },
      requestMessageFunction: { self.visit(.streamMessage, $1, .proceed($0)) },
      streamResultFunction: { self.visit(.streamResult, $1, .proceed($0)) }
    )
  }
}
