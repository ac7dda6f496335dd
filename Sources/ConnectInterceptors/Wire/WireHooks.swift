internal import Connect
internal import NIOCore
internal import Synchronization

/// The hooks of an interceptor for an exchange, with its name for messages.
struct WireHooks {
  let name: String
  let function: WireFunction

  init(_ interceptor: any WireInterceptor) {
    self.name = String(describing: type(of: interceptor))
    self.function = interceptor.wireFunction()
  }

  /// Calls the hook for a part. There is one.
  func call(
    _ part: WirePart,
    _ direction: WireDirection,
    _ reply: WireReply,
    on executor: any TaskExecutor
  ) {
    switch direction {
    case .request: self.callRequestHook(part, reply, on: executor)
    case .response: self.callResponseHook(part, reply, on: executor)
    }
  }

  private func callRequestHook(_ part: WirePart, _ reply: WireReply, on executor: any TaskExecutor) {
    switch part {
    case .request(let head):
      self.function.requestHeadFunction?(head, .forHead(reply, on: executor) { .request($0.keeping(head)) })
    case .chunk(let bytes, _):
      self.function.requestChunkFunction?(bytes, .forChunk(reply, on: executor))
    case .end(let trailers):
      self.function.requestEndFunction?(trailers, .forEnd(reply, on: executor))
    case .response, .failure: break
    }
  }

  private func callResponseHook(_ part: WirePart, _ reply: WireReply, on executor: any TaskExecutor) {
    switch part {
    case .response(let head):
      self.function.responseHeadFunction?(head, .forHead(reply, on: executor) { .response($0) })
    case .chunk(let bytes, _):
      self.function.responseChunkFunction?(bytes, .forChunk(reply, on: executor))
    case .end(let trailers):
      self.function.responseEndFunction?(trailers, .forEnd(reply, on: executor))
    case .failure(let failure):
      self.function.failureFunction?(
        failure,
        Proceed(on: executor) { reply.answer(.parts([.failure($0.keeping(failure))])) }
      )
    case .request: break
    }
  }
}

/// What a hook said.
enum WireAnswer: Sendable {
  case parts([WirePart])
  case fail(ConnectError)
  /// All copies of `proceed` are gone. With the name of the part.
  case released(String)
}

/// The right of a hook to answer, once. All copies of its `proceed` share it.
final class WireReply: Sendable {
  private let name: String
  private let receive: @Sendable (WireAnswer) -> Void
  private let isUsed = Atomic(false)

  /// - Parameters:
  ///   - name: Of the part that the hook has got.
  ///   - receive: Called at most once, on any thread.
  init(_ name: String, _ receive: @escaping @Sendable (WireAnswer) -> Void) {
    self.name = name
    self.receive = receive
  }

  func answer(_ answer: WireAnswer) {
    guard !self.isUsed.exchange(true, ordering: .relaxed) else { return }
    self.receive(answer)
  }

  deinit {
    guard !self.isUsed.load(ordering: .relaxed) else { return }
    // In a task, since a copy may be released while a lock of the event loop is held.
    let (name, receive) = (self.name, self.receive)
    Task.detached { receive(.released(name)) }
  }
}

extension Proceed {
  fileprivate static func forHead<Head>(
    _ reply: WireReply,
    on executor: any TaskExecutor,
    _ part: @escaping @Sendable (Head) -> WirePart
  ) -> Self where Verb == WireHeadVerb<Head> {
    Proceed(on: executor) { verb in
      switch verb {
      case .proceed(let head): reply.answer(.parts([part(head)]))
      case .fail(let error): reply.answer(.fail(error))
      }
    }
  }
}

extension Proceed where Verb == WireChunkVerb {
  fileprivate static func forChunk(_ reply: WireReply, on executor: any TaskExecutor) -> Self {
    Proceed(on: executor) { verb in
      switch verb {
      case .send(let chunks): reply.answer(.parts(chunks.map { .chunk($0, credit: 0) }))
      case .fail(let error): reply.answer(.fail(error))
      }
    }
  }
}

extension Proceed where Verb == WireEndVerb {
  fileprivate static func forEnd(_ reply: WireReply, on executor: any TaskExecutor) -> Self {
    Proceed(on: executor) { verb in
      switch verb {
      case .proceed(let trailers, let chunks):
        reply.answer(.parts(chunks.map { .chunk($0, credit: 0) } + [.end(trailers)]))
      case .fail(let error): reply.answer(.fail(error))
      }
    }
  }
}

extension HTTPStreamRequest {
  /// The request with what interceptors cannot set, or have not, of the request in whose place it stands.
  fileprivate func keeping(_ original: HTTPStreamRequest) -> HTTPStreamRequest {
    var request = self
    request.hasOtherProtocols = original.hasOtherProtocols
    request.context = original.context
    // A newly made request does not say it, but goes where the original went. A changed copy may have nil on purpose.
    if !request.isGiven, request.authority == nil { request.authority = original.authority }
    request.follow(original.destination)
    request.isGiven = true
    return request
  }
}

extension HTTPStreamFailure {
  /// The failure with what interceptors cannot set, of the failure in whose place it stands.
  fileprivate func keeping(_ original: HTTPStreamFailure) -> HTTPStreamFailure {
    var failure = self
    failure.keepsTransparentRetry = original.keepsTransparentRetry && self.isUnprocessed
    return failure
  }
}
