internal import Connect
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

/// Messages of streams by method.
final class StreamCache: Sendable {
  private let answers = Mutex<[String: [ByteBuffer]]>([:])

  subscript(path: String) -> [ByteBuffer]? {
    get { self.answers.withLock { $0[path] } }
    set { self.answers.withLock { $0[path] = newValue } }
  }
}

/// Asks the server once for a stream that is the same for everybody.
///
/// The bug: what came of a stream that its caller has cancelled is kept as the whole.
final class CutAnswer: Interceptor {
  private let isMended: Bool
  private let cache: StreamCache
  private var path = ""
  private var messages: [ByteBuffer] = []
  private var isCached = false
  private var isWhole = false
  private var hasFailed = false

  init(isMended: Bool, cache: StreamCache) {
    self.isMended = isMended
    self.cache = cache
  }

  func streamFunction() -> StreamFunction {
    StreamFunction(
      requestFunction: { request, proceed in
        self.path = request.url.path
        guard let messages = self.cache[self.path] else { return proceed(.success(request)) }
        self.isCached = true
        proceed.answer(StreamAnswer(messages: messages))
      },
      streamResultFunction: { result, proceed in
        switch result {
        case .headers: break
        case .message(let message): self.messages.append(message)
        case .complete(_, let error, _):
          self.isWhole = error == nil
          self.hasFailed = error != nil && error?.code != .canceled
        }
        proceed(result)
      }
    )
  }

  func callFunction(_ method: MethodInfo) -> CallFunction {
    CallFunction(endFunction: { _ in
      guard !self.isCached, !self.hasFailed, !self.messages.isEmpty else { return }
      guard self.isWhole || !self.isMended else { return }
      self.cache[self.path] = self.messages
    })
  }
}

extension ExplorationCase {
  static let cutAnswer = ExplorationCase(
    "CutAnswer",
    source: "caddyserver/cache-handler#73",
    breaking: ["answers are whole", "errors are not swallowed"]
  ) { isMended in
    InterceptorExplorer { _ in
      let cache = StreamCache()
      return Subject { _ in CutAnswer(isMended: isMended, cache: cache) }
    }
    .calls(2)
    .methods([.serverStream])
    .requests { _ in ("the same for all", [:]) }
    .server(.answers(.ok, .unavailable, .messagesThenFailure(.unavailable)))
    .neighbours(false)
    // It answers before it knows what the caller sends.
    .allowing(.sharedResponses)
    .check("answers are whole") { run in
      run.calls.allSatisfy { $0.code != .ok || $0.received.count == 3 }
    }
  }
}
