import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The end hook: called exactly once for each interceptor, whatever the reason.
final class EndHookTests: XCTestCase {
  private enum Form: CaseIterable {
    case unary
    case stream
  }

  /// An interceptor that notes its end hook.
  private static func noting(
    _ name: String,
    _ ends: Events,
    _ configure: @escaping @Sendable (inout TestInterceptor) -> Void = { _ in }
  ) -> InterceptorFactory {
    TestInterceptor.make { interceptor in
      configure(&interceptor)
      interceptor.call.endFunction = { ends.add("\(name) \($0.code)") }
    }
  }

  /// Makes a call with a callback, and gives its end.
  private func call(
    _ client: ProtocolClient,
    _ form: Form,
    options: CallOptions = CallOptions(),
    ended: Signal<Code>
  ) -> CallHandle? {
    switch form {
    case .unary:
      return client.unary(.unary, "x", options: options) { ended.fire($0.code) }
    case .stream:
      client.serverStream(.serverStream, "x", options: options) { result in
        if case .complete(let code, _, _) = result { ended.fire(code) }
      }
      return nil
    }
  }

  // MARK: Order

  func testItIsTheLastOfAllHooks() async {
    for isCancelled in [false, true] {
      let events = Events()
      let interceptors = ["A", "B"].map { name in
        Self.noting(name, events) { interceptor in
          interceptor.call.outcomeFunction = { _ in events.add("\(name) outcome") }
          interceptor.unaryBytes.responseMetricsFunction = { metrics, proceed in
            events.add("\(name) metrics")
            proceed(metrics)
          }
        }
      }
      let transport = isCancelled ? ScriptedTransport.silent() : .echo()
      let client = ProtocolClient.scripted(transport, interceptors: interceptors)
      let ended = Signal<Code>()
      let handle = client.unary(.unary, "x") { response in
        // Of a call that ends by itself, interceptors know before the caller.
        if !isCancelled { XCTAssertEqual(events.all.count, 6) }
        ended.fire(response.code)
      }
      transport.virtualExecutor.runUntilIdle()
      if isCancelled { handle.cancel() }
      let code = await ended.wait()
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(events.all.count, 6)
      XCTAssertEqual(
        Set(events.all.prefix(4)),
        ["A metrics", "B metrics", "A outcome", "B outcome"],
        "cancelled: \(isCancelled)"
      )
      XCTAssertEqual(Array(events.all.suffix(2)), ["B \(code)", "A \(code)"])
    }
  }

  func testItIsToldTheOutcomeThatTheCallerGets() async {
    for form in Form.allCases {
      let ends = Events()
      let changing = TestInterceptor.make { interceptor in
        interceptor.call.outcomeFunction = { $0.error = ConnectError(code: .dataLoss) }
      }
      let transport = ScriptedTransport.silent()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          changing, Self.noting("A", ends),
          Self.noting("B", ends) {
            $0.unaryBytes.requestFunction = failing; $0.streamBytes.requestFunction = failingStream
          },
        ]
      )
      let ended = Signal<Code>()
      _ = self.call(client, form, ended: ended)
      let code = await ended.wait()
      XCTAssertEqual(code, .dataLoss)
      XCTAssertEqual(ends.all, ["B data_loss", "A data_loss"])
    }
  }

  func testAHookThatCancelsItsCallReturnsBefore() async {
    for form in Form.allCases {
      let events = Events()
      let cancellation = CallCancellation()
      let cancel: @Sendable () -> Void = {
        events.add("begin")
        cancellation.cancel()
        events.add("end")
      }
      let transport = ScriptedTransport.silent()
      let cancelling = Self.noting("A", events) { interceptor in
        interceptor.unaryBytes.requestFunction = { request, proceed in
          cancel()
          proceed(.success(request))
        }
        interceptor.streamBytes.requestFunction = { request, proceed in
          cancel()
          proceed(.success(request))
        }
      }
      let client = ProtocolClient.scripted(transport, interceptors: [cancelling])
      var options = CallOptions()
      options.context.cancellation = cancellation
      let ended = Signal<Code>()
      _ = self.call(client, form, options: options, ended: ended)
      let code = await ended.wait()
      XCTAssertEqual(code, .canceled)
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(events.all, ["begin", "end", "A canceled"], "\(form)")
    }
  }

  func testAChangedOutcomeKeepsTheCounts() async {
    let outcomes = Signal<CallOutcome>()
    let failing = TestInterceptor.make { interceptor in
      interceptor.call.outcomeFunction = { $0.code = .dataLoss }
      interceptor.call.endFunction = { outcomes.fire($0) }
    }
    let response = await ProtocolClient.scripted(.echo(), interceptors: [failing]).unary(.unary, "x")
    XCTAssertEqual(response.code, .dataLoss)
    let outcome = await outcomes.wait()
    XCTAssertEqual(outcome.code, .dataLoss)
    XCTAssertEqual(outcome.messagesReceived, 1)
  }

  func testTheOutcomeHasCounts() async {
    let outcomes = Signal<CallOutcome>()
    let counting = TestInterceptor.make { interceptor in
      interceptor.call.endFunction = { outcomes.fire($0) }
      interceptor.unaryBytes.responseFunction = { response, proceed in
        if response.error == nil { proceed(response) } else { proceed.retry() }
      }
    }
    let transport = ScriptedTransport.replying([
      { $0.fail(ConnectError(code: .unavailable)) }, { $0.reply($0.sentMessage) },
    ])
    let response = await ProtocolClient.scripted(transport, interceptors: [counting]).unary(.unary, "x")
    let outcome = await outcomes.wait()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(outcome.attempts, 2)
    XCTAssertEqual(outcome.messagesSent, 1)
    XCTAssertEqual(outcome.messagesReceived, 1)
    XCTAssertEqual(outcome.exchange?.httpStatus, 200)
    XCTAssertEqual(outcomes.count, 0)
  }

  // MARK: Ways to end

  func testEachWayToEnd() async {
    let keeping: @Sendable (inout TestInterceptor, KeptProceeds) -> Void = { interceptor, kept in
      interceptor.unaryBytes.requestFunction = { _, proceed in kept.add(proceed) }
      interceptor.streamBytes.requestFunction = { _, proceed in kept.add(proceed) }
    }
    for form in Form.allCases {
      for way in ["deadline", "deadline at a hook", "cancelled", "cancelled at a hook", "dropped"] {
        let ends = Events()
        let kept = KeptProceeds()
        let cancellation = CallCancellation()
        let transport = ScriptedTransport.silent()
        let client = ProtocolClient.scripted(
          transport,
          interceptors: [
            Self.noting("A", ends),
            Self.noting("B", ends) { interceptor in
              if way.hasSuffix("hook") || way == "dropped" { keeping(&interceptor, kept) }
            },
            Self.noting("C", ends),
          ],
          timeout: .seconds(1)
        )
        let ended = Signal<Code>()
        var options = CallOptions()
        options.context.cancellation = cancellation
        let handle = self.call(client, form, options: options, ended: ended)
        transport.virtualExecutor.runUntilIdle()
        XCTAssertEqual(ends.all, [], way)
        if way.hasPrefix("cancelled") { cancellation.cancel() }
        if way.hasPrefix("deadline") { transport.virtualExecutor.advance(by: .seconds(1)) }
        if way == "dropped" { kept.removeAll() }
        let code = await ended.wait()
        transport.virtualExecutor.runUntilIdle()
        XCTAssertEqual(ends.all, ["C \(code)", "B \(code)", "A \(code)"], "\(form), \(way)")
        // Nothing that comes later ends it again.
        handle?.cancel()
        kept.removeAll()
        transport.virtualExecutor.advance(by: .seconds(10))
        XCTAssertEqual(ends.all.count, 3, "\(form), \(way)")
      }
    }
  }

  func testCallsThatNeverBegin() async {
    for form in Form.allCases {
      for way in ["cancelled", "no time", "no host"] {
        let ends = Events()
        let cancellation = CallCancellation()
        let transport = ScriptedTransport.echo()
        let asked = Events()
        let interceptor = Self.noting("A", ends) { interceptor in
          interceptor.call.requestFunction = { _ in asked.add("request") }
          interceptor.call.outcomeFunction = { _ in asked.add("outcome") }
        }
        let client = ProtocolClient.scripted(transport, interceptors: [interceptor]) {
          if way == "no host" { $0.host = "no host" }
        }
        var options = CallOptions(timeout: way == "no time" ? .zero : nil)
        options.context.cancellation = cancellation
        if way == "cancelled" { cancellation.cancel() }
        let ended = Signal<Code>()
        _ = self.call(client, form, options: options, ended: ended)
        let code = await ended.wait()
        XCTAssertNotEqual(code, .ok, way)
        XCTAssertEqual(ends.all, ["A \(code)"], "\(form), \(way)")
        XCTAssertEqual(asked.all, [], "\(form), \(way)")
        XCTAssertEqual(transport.streams.count, 0)
      }
    }
  }

  func testACallThatEndsWhileInterceptorsAreAsked() async {
    for form in Form.allCases {
      let ends = Events()
      let cancellation = CallCancellation()
      let transport = ScriptedTransport.echo()
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [
          Self.noting("A", ends), { _ in CancellingInterceptor(cancellation, ends) }, Self.noting("C", ends),
        ]
      )
      var options = CallOptions()
      options.context.cancellation = cancellation
      let ended = Signal<Code>()
      _ = self.call(client, form, options: options, ended: ended)
      let code = await ended.wait()
      XCTAssertEqual(code, .canceled)
      transport.virtualExecutor.runUntilIdle()
      XCTAssertEqual(ends.all, ["cancelling canceled", "A canceled"])
      XCTAssertEqual(transport.streams.count, 0)
    }
  }

  /// An end hook may make a call, cancel its own, and be the last to hold its interceptor.
  func testItMayDoWhatOtherHooksMay() async {
    let transport = ScriptedTransport.echo()
    let inner = ProtocolClient.scripted(transport)
    let cancellation = CallCancellation()
    let nested = Signal<Code>()
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.call.endFunction = { _ in
            cancellation.cancel()
            inner.unary(.unary, "y") { nested.fire($0.code) }
          }
        }
      ]
    )
    var options = CallOptions()
    options.context.cancellation = cancellation
    let response = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(response.message, "x")
    let code = await nested.wait()
    XCTAssertEqual(code, .ok)
  }

  // MARK: Methods

  func testByteHooksKnowTheMethod() async {
    let methods = Events()
    let knowing = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.requestFunction = { request, proceed in
        methods.add(request.method?.path ?? "none")
        // A new request gets the method, too.
        proceed(
          .success(HTTPRequest(url: request.url, contentType: request.contentType, message: request.message))
        )
      }
      interceptor.streamBytes.requestFunction = { request, proceed in
        methods.add(request.method?.path ?? "none")
        proceed(.success(HTTPRequest(url: request.url, contentType: request.contentType)))
      }
    }
    let unary = ProtocolClient.scripted(.echo(), interceptors: [knowing, knowing])
    _ = await unary.unary(.unary, "x")
    let path = MethodSpec<Text, Text>.unary.path
    XCTAssertEqual(methods.all, [path, path])
    let streams = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: [knowing, knowing]
    )
    _ = await streams.results()
    let streamPath = MethodSpec<Text, Text>.bidirectional.path
    XCTAssertEqual(methods.all, [path, path, streamPath, streamPath])
  }
}

private let failing: @Sendable (HTTPRequest<ByteBuffer>, UnaryFunction.RequestProceed) -> Void = {
  _,
  proceed in
  proceed(.failure(ConnectError(code: .aborted)))
}

private let failingStream: @Sendable (HTTPRequest<Void>, StreamFunction.RequestProceed) -> Void = {
  _,
  proceed in
  proceed(.failure(ConnectError(code: .aborted)))
}

/// Ends its call while it is asked for its call hooks.
private struct CancellingInterceptor: Interceptor {
  private let cancellation: CallCancellation
  private let ends: Events

  init(_ cancellation: CallCancellation, _ ends: Events) {
    self.cancellation = cancellation
    self.ends = ends
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    self.cancellation.cancel()
    return CallFunction(endFunction: { [ends] in ends.add("cancelling \($0.code)") })
  }
}

/// What hooks have kept and not called.
private final class KeptProceeds: Sendable {
  private let values = Box<[any Sendable]>([])

  func add(_ proceed: any Sendable) { self.values.value += [proceed] }

  func removeAll() { self.values.value = [] }
}
