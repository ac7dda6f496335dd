internal import Connect
internal import Synchronization

/// The scripts of a service's methods, by path.
final class MockRecorder: Sendable {
  private let scripts = Mutex<[String: any Sendable]>([:])

  func add<Input, Output>(_ script: MockScript<Input, Output>) {
    self.scripts.withLock { $0[script.method.path] = script }
  }

  /// The record of a call: the one that the mock has made, or a new one for a call that went past the mock. Nil for
  /// a method without mock.
  func call<Input, Output, Message>(
    _ method: MethodSpec<Input, Output>,
    _ request: HTTPRequest<Message>
  ) -> MockCall<Input>? {
    if let call = request.context.mockCall(of: method.info, Input.self) { return call }
    let script = self.scripts.withLock { $0[method.path] } as? MockScript<Input, Output>
    return script?.makeCall(CallOptions(headers: request.headers, context: request.context))
  }
}

/// Ties each call to its record, and notes there how the call ends for its caller.
final class MockRecordingInterceptor: Interceptor {
  private let recorder: MockRecorder
  private var recordEnd: ((CallOutcome) -> Void)?
  /// The record, which a retry from the start continues.
  private var record: (any Sendable)?

  init(_ recorder: MockRecorder) {
    self.recorder = recorder
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    // A call that is cancelled may tell of its end later than its caller; the first counts.
    CallFunction(
      outcomeFunction: { outcome in self.recordEnd?(outcome) },
      endFunction: { outcome in self.recordEnd?(outcome) }
    )
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    UnaryMessageFunction(updateRequest: { request in self.tie(&request, of: method) })
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    StreamMessageFunction(
      requestFunction: { request, proceed in
        var request = request
        self.tie(&request, of: method)
        proceed(.success(request))
      }
    )
  }

  private func tie<Message, Input, Output>(
    _ request: inout HTTPRequest<Message>,
    of method: MethodSpec<Input, Output>
  ) {
    let call = self.record as? MockCall<Input> ?? self.recorder.call(method, request)
    self.record = call
    request.context[MockCallKey.self] = call
    self.recordEnd = { outcome in call?.didEnd(outcome) }
  }
}

/// Notes the end of a call that the mock has made a record of, also where its request goes nowhere.
struct MockEndInterceptor<Input: Sendable>: Interceptor {
  let call: MockCall<Input>

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { outcome in self.call.didEnd(outcome) })
  }
}
