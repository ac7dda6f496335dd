internal import NIOCore

/// The hooks of an interceptor at one level, for the ``Pipeline``, which does not know the types of messages.
/// Subclasses know them.
class HookStage: Stage {
  final let kinds: HookKinds

  init(_ kinds: HookKinds, _ form: Form, of interceptor: any Interceptor.Type) {
    self.kinds = kinds
    super.init(form, of: interceptor)
  }

  /// Calls the hook for a part of the request.
  func call(with part: RequestPart, _ visit: Visit) {}
  /// Calls the hook for a part of the response.
  func call(with result: ResultPart, _ visit: Visit) {}

  /// Lets a synchronous hook change the request.
  ///
  /// - Returns: The error that the hook fails the call with.
  func update(_ part: inout RequestPart) -> ConnectError? { nil }
  /// Lets a synchronous hook change the response.
  func updated(_ result: ResultPart) -> (ResultPart, ResponseDecision) { (result, .proceed) }
}

/// Which hooks there are.
struct HookKinds: OptionSet {
  let rawValue: UInt8

  /// For a request, or a stream's head.
  static let head = HookKinds(rawValue: 1)
  /// For the messages of a stream's request.
  static let message = HookKinds(rawValue: 2)
  /// For the response.
  static let result = HookKinds(rawValue: 4)
  /// For a request, synchronous.
  static let headUpdate = HookKinds(rawValue: 8)
  /// For the response, synchronous.
  static let resultUpdate = HookKinds(rawValue: 16)

  /// Whether a hook sees the response.
  var seesResult: Bool { !self.isDisjoint(with: [.result, .resultUpdate]) }

  func contains(hookFor part: RequestPart) -> Bool {
    switch part {
    case .whole, .wholeBytes, .head: self.contains(.head)
    case .message, .bytes: self.contains(.message)
    case .end: false
    }
  }
}

extension HTTPRequest {
  /// Nil if it is not a whole request.
  package init?(_ part: RequestPart) {
    switch part {
    case .whole(let head, let message): self.init(head: head, box: .of(message))
    case .wholeBytes(let head, let bytes): self.init(head: head, box: .of(MessageBox(bytes)))
    case .head, .message, .bytes, .end: return nil
    }
  }
}

/// Message hooks around a unary call.
///
/// Generic over the message types alone: types composed of these would have to be looked up at run time.
final class UnaryMessageStage<Input: Sendable, Output: Sendable>: HookStage {
  private let hooks: UnaryMessageFunction<Input, Output>

  init(_ hooks: consuming UnaryMessageFunction<Input, Output>, of interceptor: any Interceptor.Type) {
    let kinds = hooks.kinds
    self.hooks = hooks
    super.init(kinds, .response, of: interceptor)
  }

  override func call(with part: RequestPart, _ visit: Visit) {
    if let request = HTTPRequest<Input>(part) { self.hooks.requestHook?(request, Proceed(visit)) }
  }

  override func call(with result: ResultPart, _ visit: Visit) {
    guard case .whole(let response) = result else { return }
    self.hooks.responseHook?(ResponseMessage(response), Proceed(visit))
  }

  override func update(_ part: inout RequestPart) -> ConnectError? { part.update(self.hooks.requestUpdate) }

  override func updated(_ result: ResultPart) -> (ResultPart, ResponseDecision) {
    guard case .whole(let erased) = result, let update = self.hooks.responseUpdate else {
      return (result, .proceed)
    }
    var response = ResponseMessage<Output>(erased)
    let decision = update(&response)
    return (.whole(response.erased), decision)
  }
}

/// Byte hooks around a unary call.
final class UnaryByteStage: HookStage {
  private let hooks: UnaryFunction

  init(_ hooks: consuming UnaryFunction, of interceptor: any Interceptor.Type) {
    let kinds = hooks.kinds
    self.hooks = hooks
    super.init(kinds, .responseBytes, of: interceptor)
  }

  override func call(with part: RequestPart, _ visit: Visit) {
    if let request = HTTPRequest<ByteBuffer>(part) { self.hooks.requestHook?(request, Proceed(visit)) }
  }

  override func call(with result: ResultPart, _ visit: Visit) {
    if case .wholeBytes(let response) = result { self.hooks.responseHook?(response, Proceed(visit)) }
  }

  override func update(_ part: inout RequestPart) -> ConnectError? { part.update(self.hooks.requestUpdate) }

  override func updated(_ result: ResultPart) -> (ResultPart, ResponseDecision) {
    guard case .wholeBytes(var response) = result, let update = self.hooks.responseUpdate else {
      return (result, .proceed)
    }
    let decision = update(&response)
    return (.wholeBytes(response), decision)
  }
}

extension UnaryHooks {
  // Inlined, so that nothing looks up the types of these hooks.
  @inline(__always)
  var kinds: HookKinds {
    var kinds: HookKinds = []
    if self.requestHook != nil { kinds.insert(.head) }
    if self.requestUpdate != nil { kinds.insert(.headUpdate) }
    if self.responseHook != nil { kinds.insert(.result) }
    if self.responseUpdate != nil { kinds.insert(.resultUpdate) }
    return kinds
  }
}

extension RequestPart {
  /// Lets a synchronous hook change the request.
  ///
  /// - Returns: The error that the hook fails the call with.
  fileprivate mutating func update<Message>(
    _ update: ((inout HTTPRequest<Message>) throws -> Void)?
  ) -> ConnectError? {
    guard let update else { return nil }
    var request: HTTPRequest<Message>
    switch consume self {
    case .whole(let head, let message): request = HTTPRequest(head: head, box: .of(message))
    case .wholeBytes(let head, let bytes): request = HTTPRequest(head: head, box: .of(MessageBox(bytes)))
    case let other:
      self = other
      return nil
    }
    do {
      try request.change(by: update)
      self = request.part
      return nil
    } catch {
      self = .end
      return ConnectError(error)
    }
  }
}

extension StreamHooks {
  @inline(__always)
  var kinds: HookKinds {
    var kinds: HookKinds = []
    if self.requestFunction != nil { kinds.insert(.head) }
    if self.requestMessageFunction != nil { kinds.insert(.message) }
    if self.streamResultFunction != nil { kinds.insert(.result) }
    return kinds
  }
}

/// Message hooks around a stream.
final class StreamMessageStage<Input: Sendable, Output: Sendable>: HookStage {
  private let hooks: StreamMessageFunction<Input, Output>

  init(_ hooks: consuming StreamMessageFunction<Input, Output>, of interceptor: any Interceptor.Type) {
    let kinds = hooks.kinds
    self.hooks = hooks
    super.init(kinds, .stream, of: interceptor)
  }

  override func call(with part: RequestPart, _ visit: Visit) {
    switch part {
    case .head(let head), .whole(let head, _), .wholeBytes(let head, _):
      self.hooks.requestFunction?(HTTPRequest(head: head), Proceed(visit))
    case .message(let message):
      self.hooks.requestMessageFunction?(MessageBox<Input>.of(message).message, Proceed(visit))
    case .bytes, .end:
      break
    }
  }

  override func call(with result: ResultPart, _ visit: Visit) {
    self.hooks.streamResultFunction?(StreamResult(result), Proceed(visit))
  }
}

/// Byte hooks around a stream.
final class StreamByteStage: HookStage {
  private let hooks: StreamFunction

  init(_ hooks: consuming StreamFunction, of interceptor: any Interceptor.Type) {
    let kinds = hooks.kinds
    self.hooks = hooks
    super.init(kinds, .streamBytes, of: interceptor)
  }

  override func call(with part: RequestPart, _ visit: Visit) {
    switch part {
    case .head(let head), .whole(let head, _), .wholeBytes(let head, _):
      self.hooks.requestFunction?(HTTPRequest(head: head), Proceed(visit))
    case .message(let message):
      self.hooks.requestMessageFunction?(MessageBox<ByteBuffer>.of(message).message, Proceed(visit))
    case .bytes(let bytes):
      self.hooks.requestMessageFunction?(bytes, Proceed(visit))
    case .end:
      break
    }
  }

  override func call(with result: ResultPart, _ visit: Visit) {
    let result: StreamResult<ByteBuffer> =
      switch result {
      case .bytes(let bytes): .message(bytes)
      case let other: StreamResult(other)
      }
    self.hooks.streamResultFunction?(result, Proceed(visit))
  }
}
