internal import NIOCore

/// The hooks of an interceptor for a call, for the ``Pipeline``, which does not know the types of messages. Subclasses
/// know them.
class HookFunctions {
  final let interceptor: any Interceptor.Type

  init(of interceptor: any Interceptor.Type) {
    self.interceptor = interceptor
  }

  /// Calls the hook for a part of the request.
  func call(_ form: Stage.Form, with part: RequestPart, _ visit: Visit) {}
  /// Calls the hook for a part of the response.
  func call(_ form: Stage.Form, with result: ResultPart, _ visit: Visit) {}

  /// Lets a synchronous hook change the request.
  ///
  /// - Returns: The error that the hook fails the call with.
  func update(_ form: Stage.Form, _ part: inout RequestPart) -> ConnectError? { nil }
  /// Lets a synchronous hook change the response.
  func update(_ form: Stage.Form, _ result: inout ResultPart) -> ResponseDecision { .proceed }
}

// MARK: - Unary calls

/// Byte hooks around a unary call.
class UnaryByteHooks: HookFunctions {
  private let bytes: UnaryFunction

  init(_ bytes: consuming UnaryFunction, of interceptor: any Interceptor.Type) {
    self.bytes = bytes
    super.init(of: interceptor)
  }

  override func call(_ form: Stage.Form, with part: RequestPart, _ visit: Visit) {
    switch part {
    case .wholeBytes(let head, let bytes):
      self.bytes.requestHook?(HTTPRequest(head: head, box: MessageBox(bytes)), Proceed(visit))
    case .whole(let head, let message):
      self.bytes.requestHook?(HTTPRequest(head: head, box: .of(message)), Proceed(visit))
    case .head, .message, .bytes, .end: break
    }
  }

  override func call(_ form: Stage.Form, with result: ResultPart, _ visit: Visit) {
    if case .wholeBytes(let response) = result { self.bytes.responseHook?(response, Proceed(visit)) }
  }

  override func update(_ form: Stage.Form, _ part: inout RequestPart) -> ConnectError? {
    part.update(self.bytes.requestUpdate)
  }

  override func update(_ form: Stage.Form, _ result: inout ResultPart) -> ResponseDecision {
    guard let update = self.bytes.responseUpdate else { return .proceed }
    switch consume result {
    case .wholeBytes(var response):
      let decision = update(&response)
      result = .wholeBytes(response)
      return decision
    case let other:
      result = other
      return .proceed
    }
  }
}

/// Message hooks and byte hooks around a unary call.
///
/// Generic over the message types alone: types composed of these would have to be looked up at run time.
final class UnaryMessageHooks<Input: Sendable, Output: Sendable>: UnaryByteHooks {
  private let messages: UnaryMessageFunction<Input, Output>

  init(
    _ messages: consuming UnaryMessageFunction<Input, Output>,
    _ bytes: consuming UnaryFunction,
    of interceptor: any Interceptor.Type
  ) {
    self.messages = messages
    super.init(bytes, of: interceptor)
  }

  override func call(_ form: Stage.Form, with part: RequestPart, _ visit: Visit) {
    guard form == .response else { return super.call(form, with: part, visit) }
    if case .whole(let head, let message) = part {
      self.messages.requestHook?(HTTPRequest(head: head, box: .of(message)), Proceed(visit))
    }
  }

  override func call(_ form: Stage.Form, with result: ResultPart, _ visit: Visit) {
    guard form == .response else { return super.call(form, with: result, visit) }
    if case .whole(let response) = result {
      self.messages.responseHook?(ResponseMessage(response), Proceed(visit))
    }
  }

  override func update(_ form: Stage.Form, _ part: inout RequestPart) -> ConnectError? {
    form == .response ? part.update(self.messages.requestUpdate) : super.update(form, &part)
  }

  override func update(_ form: Stage.Form, _ result: inout ResultPart) -> ResponseDecision {
    guard form == .response else { return super.update(form, &result) }
    guard let update = self.messages.responseUpdate else { return .proceed }
    switch consume result {
    case .whole(let erased):
      var response = ResponseMessage<Output>(erased)
      let decision = update(&response)
      result = .whole(response.erased)
      return decision
    case let other:
      result = other
      return .proceed
    }
  }
}

// MARK: - Streams

/// Byte hooks around a stream.
class StreamByteHooks: HookFunctions {
  private let bytes: StreamFunction

  init(_ bytes: consuming StreamFunction, of interceptor: any Interceptor.Type) {
    self.bytes = bytes
    super.init(of: interceptor)
  }

  override func call(_ form: Stage.Form, with part: RequestPart, _ visit: Visit) {
    switch part {
    case .head(let head), .whole(let head, _), .wholeBytes(let head, _):
      self.bytes.requestFunction?(HTTPRequest(head: head), Proceed(visit))
    case .message(let message):
      self.bytes.requestMessageFunction?(MessageBox<ByteBuffer>.of(message).message, Proceed(visit))
    case .bytes(let bytes):
      self.bytes.requestMessageFunction?(bytes, Proceed(visit))
    case .end:
      break
    }
  }

  override func call(_ form: Stage.Form, with result: ResultPart, _ visit: Visit) {
    if case .bytes(let bytes) = result {
      self.bytes.streamResultFunction?(.message(bytes), Proceed(visit))
    } else {
      self.bytes.streamResultFunction?(StreamResult(result), Proceed(visit))
    }
  }
}

/// Message hooks and byte hooks around a stream.
final class StreamMessageHooks<Input: Sendable, Output: Sendable>: StreamByteHooks {
  private let messages: StreamMessageFunction<Input, Output>

  init(
    _ messages: consuming StreamMessageFunction<Input, Output>,
    _ bytes: consuming StreamFunction,
    of interceptor: any Interceptor.Type
  ) {
    self.messages = messages
    super.init(bytes, of: interceptor)
  }

  override func call(_ form: Stage.Form, with part: RequestPart, _ visit: Visit) {
    guard form == .stream else { return super.call(form, with: part, visit) }
    switch part {
    case .head(let head), .whole(let head, _), .wholeBytes(let head, _):
      self.messages.requestFunction?(HTTPRequest(head: head), Proceed(visit))
    case .message(let message):
      self.messages.requestMessageFunction?(MessageBox<Input>.of(message).message, Proceed(visit))
    case .bytes, .end:
      break
    }
  }

  override func call(_ form: Stage.Form, with result: ResultPart, _ visit: Visit) {
    guard form == .stream else { return super.call(form, with: result, visit) }
    self.messages.streamResultFunction?(StreamResult(result), Proceed(visit))
  }
}

// MARK: - Kinds

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
