import Connect
import Synchronization

/// Waits until all requests of a call are sent, or the call has ended: whichever comes first.
final class CallEnd: Interceptor, Sendable {
  private let ends: AsyncThrowingStream<Void, any Error>
  private let received = Atomic(0)
  private let continuation: AsyncThrowingStream<Void, any Error>.Continuation

  init() {
    (self.ends, self.continuation) = AsyncThrowingStream.makeStream()
  }

  /// The same options, for the call whose end is watched.
  func watching(_ options: CallOptions) -> CallOptions {
    var options = options
    options.interceptors.append { _ in self }
    return options
  }

  /// How many responses there were, once the call has ended.
  var responses: Int { self.received.load(ordering: .relaxed) }

  /// Only the first time counts.
  func finish(_ error: (any Error)?) { self.continuation.finish(throwing: error) }

  func wait() async throws {
    for try await _ in self.ends {}
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { outcome in
      self.received.store(outcome.messagesReceived, ordering: .relaxed)
      self.finish(nil)
    })
  }
}
