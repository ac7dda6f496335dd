internal import Connect
internal import Synchronization

/// The answers of a method's mock, and its calls.
public final class MockScript<Input: Sendable, Output: Sendable>: Sendable {
  private struct Calls {
    var all: [MockCall<Input>] = []
    /// How many of them ``nextCall(within:)`` has given.
    var taken = 0
  }

  let method: MethodInfo
  private let calls = Observed(Calls())
  /// What is still to be answered, in order; the last one stays.
  private let handlers: Mutex<[BidirectionalStreamHandler<Input, Output>]>

  init(method: MethodInfo) {
    self.method = method
    self.handlers = Mutex([])
  }

  // MARK: Script

  func setHandlers(_ handlers: [BidirectionalStreamHandler<Input, Output>]) {
    self.handlers.withLock { $0 = handlers }
  }

  private func takeHandler() -> BidirectionalStreamHandler<Input, Output>? {
    self.handlers.withLock { $0.count > 1 ? $0.removeFirst() : $0.first }
  }

  /// Answers an attempt of a call.
  func answer(
    _ requests: ServerRequests<Input>,
    _ responses: ServerResponses<Output>,
    _ context: ServerContext
  ) async throws {
    let call = context.request.context.mockCall(of: self.method, Input.self) ?? self.makeCall(CallOptions())
    call.attemptDidStart(headers: context.requestHeaders)
    let requests = requests.observed { call.didReceive($0) }
    guard let handler = self.takeHandler() else {
      if self.method.streamType != .bidirectionalStream { for try await _ in requests {} }
      throw ConnectError(
        code: .unimplemented,
        message: "\(self.method.service)/\(self.method.name) has no scripted answer in this mock"
      )
    }
    try await handler(requests, responses, context)
  }

  // MARK: Calls

  func makeCall(_ options: CallOptions) -> MockCall<Input> {
    let call = MockCall<Input>(method: self.method, options: options)
    self.calls.update { $0.all.append(call) }
    return call
  }

  var allCalls: [MockCall<Input>] { self.calls.value.all }

  func nextCall(within limit: Duration) async throws -> MockCall<Input> {
    // More than one task may wait for the same call, of which the first gets it.
    while await self.calls.wait(within: limit, until: { $0.all.count > $0.taken ? true : nil }) == true {
      guard let call = self.takeCall() else { continue }
      if await call.begin(within: limit) { return call }
      throw ExpectationFailure("a call of \(self.method.path) did not arrive within \(limit.clamped)")
    }
    let number = Self.ordinal(self.calls.value.taken + 1)
    throw ExpectationFailure(
      "\(self.method.path) was not called for the \(number) time within \(limit.clamped)"
    )
  }

  private func takeCall() -> MockCall<Input>? {
    self.calls.update { calls in
      guard calls.all.count > calls.taken else { return nil }
      calls.taken += 1
      return calls.all[calls.taken - 1]
    }
  }

  private static func ordinal(_ number: Int) -> String {
    switch number {
    case 1: "first"
    case 2: "second"
    case 3: "third"
    default: "\(number)th"
    }
  }
}

/// The record of a call, which travels with the call.
enum MockCallKey: CallContextKey {
  static var defaultValue: (any Sendable)? { nil }
}

extension CallContext {
  /// The record in this context, if it belongs to a call of `method`: an interceptor may call another method with the same
  /// context.
  func mockCall<Input>(of method: MethodInfo, _ input: Input.Type) -> MockCall<Input>? {
    let call = self[MockCallKey.self] as? MockCall<Input>
    return call?.method.path == method.path ? call : nil
  }
}
