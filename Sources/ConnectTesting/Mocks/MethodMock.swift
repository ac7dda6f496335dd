public import Connect

/// Stands for a method of a service in tests: says how its calls are answered, and keeps them.
///
/// ``UnaryMock``, ``ServerStreamMock``, ``ClientStreamMock`` and ``BidirectionalStreamMock`` are made by
/// ``MockService``. A call of a method that has no answer fails with `unimplemented`, and the method's name in the
/// message.
public protocol MethodMock<Input, Output>: Sendable {
  /// The type of request messages.
  associatedtype Input: Sendable
  /// The type of response messages.
  associatedtype Output: Sendable

  /// The answers and the calls of the method, which extensions of this protocol use.
  var script: MockScript<Input, Output> { get }
}

extension MethodMock {
  /// Answers each of the next calls with the next of these answers, and all further calls with the last answer. A
  /// retry by an interceptor takes an answer, too.
  public func answer(_ answers: MockAnswer<Output>...) {
    self.script.setHandlers(answers.map { $0.handler() })
  }

  /// All calls so far, in the order in which they were made. They are kept as long as the mock is.
  public var calls: [MockCall<Input>] { self.script.allCalls }

  /// Waits for the next call that this function has not yet returned, beginning with the first call, even if it was made
  /// before. For a unary method or a server stream, the request has then arrived; otherwise, it has begun. A call that
  /// never reaches the mock is returned when it has ended.
  ///
  /// - Parameter limit: How long to wait at most, in real time.
  /// - Throws: ``ExpectationFailure`` if there is no such call in time.
  @discardableResult
  public func nextCall(within limit: Duration = .seconds(5)) async throws -> MockCall<Input> {
    try await self.script.nextCall(within: limit)
  }

  /// Options that tie the call that is made with them to a record of it in ``calls``. For generated mocks.
  public func recording(_ options: CallOptions) -> CallOptions {
    var recording = options
    let call = self.script.makeCall(options)
    recording.context[MockCallKey.self] = call
    recording.interceptors.append { _ in MockEndInterceptor(call: call) }
    return recording
  }
}

/// Stands for a unary method.
public final class UnaryMock<Input: Sendable, Output: Sendable>: MethodMock {
  /// The answers and the calls of the method.
  public let script: MockScript<Input, Output>

  init(_ script: MockScript<Input, Output>) {
    self.script = script
  }

  /// Answers all calls from now on with what a function returns or throws.
  public func answer(_ handler: @escaping UnaryHandler<Input, Output>) {
    self.script.setHandlers([StreamForm.unary(handler)])
  }
}

/// Stands for a method that answers a message with a stream.
public final class ServerStreamMock<Input: Sendable, Output: Sendable>: MethodMock {
  /// The answers and the calls of the method.
  public let script: MockScript<Input, Output>

  init(_ script: MockScript<Input, Output>) {
    self.script = script
  }

  /// Answers all calls from now on with what a function sends, until it returns or throws.
  public func answer(_ handler: @escaping ServerStreamHandler<Input, Output>) {
    self.script.setHandlers([StreamForm.serverStream(handler)])
  }
}

/// Stands for a method that answers a stream with a message.
public final class ClientStreamMock<Input: Sendable, Output: Sendable>: MethodMock {
  /// The answers and the calls of the method.
  public let script: MockScript<Input, Output>

  init(_ script: MockScript<Input, Output>) {
    self.script = script
  }

  /// Answers all calls from now on with what a function returns or throws.
  public func answer(_ handler: @escaping ClientStreamHandler<Input, Output>) {
    self.script.setHandlers([StreamForm.clientStream(handler)])
  }
}

/// Stands for a method with streams in both directions.
public final class BidirectionalStreamMock<Input: Sendable, Output: Sendable>: MethodMock {
  /// The answers and the calls of the method.
  public let script: MockScript<Input, Output>

  init(_ script: MockScript<Input, Output>) {
    self.script = script
  }

  /// Answers all calls from now on with what a function sends, until it returns or throws.
  public func answer(_ handler: @escaping BidirectionalStreamHandler<Input, Output>) {
    self.script.setHandlers([handler])
  }
}
