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

/// Outside of all others, so that it sees how the call ends for the caller.
struct MockRecordingInterceptor: Interceptor {
  /// The call's record, in hooks that run one at a time.
  private final class Current<Input: Sendable> {
    var call: MockCall<Input>?
  }

  private let recorder: MockRecorder

  init(_ recorder: MockRecorder) {
    self.recorder = recorder
  }

  func unaryMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> UnaryMessageFunction<Input, Output> {
    let current = Current<Input>()
    return UnaryMessageFunction(
      requestFunction: { [recorder] request, proceed in
        current.call = recorder.call(method, request)
        var request = request
        request.context[MockCallKey.self] = current.call
        proceed(.success(request))
      },
      responseFunction: { response, proceed in
        current.call?.didEnd(response.code, response.error)
        proceed(response)
      }
    )
  }

  func streamMessageFunction<Input, Output>(
    _ method: MethodSpec<Input, Output>
  ) -> StreamMessageFunction<Input, Output> {
    let current = Current<Input>()
    return StreamMessageFunction(
      requestFunction: { [recorder] request, proceed in
        current.call = recorder.call(method, request)
        var request = request
        request.context[MockCallKey.self] = current.call
        proceed(.success(request))
      },
      streamResultFunction: { result, proceed in
        if case .complete(let code, let error, _) = result { current.call?.didEnd(code, error) }
        proceed(result)
      }
    )
  }
}
