internal import Connect
internal import ConnectTesting
internal import NIOCore
internal import Synchronization

/// Responses by method.
final class AnswerCache: Sendable {
  private let answers = Mutex<[String: HTTPResponse]>([:])

  subscript(path: String) -> HTTPResponse? {
    get { self.answers.withLock { $0[path] } }
    set { self.answers.withLock { $0[path] = newValue } }
  }
}

/// Asks the server once for what is the same for everybody.
///
/// The bug: it stores errors, too.
struct CachedError: AsyncUnaryByteInterceptor {
  let cache: AnswerCache

  func interceptUnaryBytes(
    _ request: HTTPRequest<ByteBuffer>,
    method: MethodInfo,
    next: UnaryByteNext
  ) async throws -> HTTPResponse {
    if let answer = self.cache[method.path] { return answer }
    let response = try await next(request)
    self.cache[method.path] = response
    return response
  }
}

extension ExplorationCase {
  static let cachedError = ExplorationCase(
    "CachedError",
    source: "CleverCloud/clever-client.js#226",
    breaking: ["a new attempt after an error", "calls fail for a reason", "calls end at their deadline"],
    InterceptorExplorer { _ in
      let cache = AnswerCache()
      return Subject { _ in CachedError(cache: cache) }
    }
    .calls(2)
    .requests { _ in ("the same for all", [:]) }
    .server(.answers(.ok, .unavailable))
    .neighbours(false)
    .check("a new attempt after an error") { run in
      run.calls.allSatisfy { $0.code != .unavailable || !$0.attempts.isEmpty }
    }
  )
}
