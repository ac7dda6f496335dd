import NIOCore

@testable import Connect

/// Drives a ``PipelineOrder`` as a pipeline does. What hooks, the wire and the caller do, the test says.
final class OrderDriver {
  /// What a stage does with a part.
  enum Hook {
    /// There is no hook for it.
    case none
    /// The hook returns without having proceeded.
    case waits
    /// The hook proceeds before it returns.
    case does(HookAction)
  }

  /// A hook that has returned without having proceeded.
  struct Visit: Equatable {
    let isRequest: Bool
    let index: Int
    let number: Int
    let part: String
  }

  /// A retry that waits for its time.
  struct Retry {
    let index: Int
    let head: RequestPart
    let epoch: Int
  }

  let order: PipelineOrder
  let count: Int
  let maximumReplayBytes: Int
  var onRequest: (Int, RequestPart) -> Hook = { _, _ in .none }
  var onResult: (Int, ResultPart) -> Hook = { _, _ in .none }
  /// How many parts the wire takes.
  var wireRoom = Int.max
  /// How many results the caller wants.
  var demand = Int.max
  private var lastNumber = 0
  private(set) var visits: [Visit] = []
  private(set) var retries: [Retry] = []
  private(set) var wire: [String] = []
  private(set) var delivered: [String] = []
  /// How often what is inside was given up.
  private(set) var dropCount = 0

  /// The order looks at nothing of a stage but where it stands.
  private static func stages(_ count: Int, _ form: Stage.Form) -> [Stage] {
    (0..<count).map { _ in .hooks(HookFunctions(of: NoInterceptor.self), [], form) }
  }

  /// - Parameters:
  ///   - messageStages: How many stages stand in front of the codec.
  ///   - byteStages: How many stand behind.
  init(
    _ messageStages: Int,
    _ byteStages: Int = 0,
    isUnary: Bool = false,
    maximumWaiting: Int = 4,
    maximumReplayBytes: Int = 1000
  ) {
    self.count = messageStages + 1 + byteStages
    self.maximumReplayBytes = maximumReplayBytes
    self.order = PipelineOrder(isUnary: isUnary, maximumWaiting: maximumWaiting)
    guard self.count > 1 else { return }
    let (message, bytes): (Stage.Form, Stage.Form) =
      isUnary ? (.response, .responseBytes) : (.stream, .stream)
    self.order.begin(
      with: Self.stages(messageStages, message) + [.codec]
        + Self.stages(byteStages, bytes),
      codec: messageStages
    )
  }

  /// What happens at the stages.
  var states: HookStates { self.order }

  private func form(at index: Int) -> Stage.Form {
    guard case .hooks(_, _, let form) = self.order.stages[index] else { return .stream }
    return form
  }

  // MARK: Down

  func start(_ part: RequestPart = .head("first")) {
    self.begin(atMessages: true, part)
    self.send(part, at: 0)
    self.move()
  }

  /// Sends what the caller has sent, if there is room.
  ///
  /// - Returns: False if there is none.
  @discardableResult
  func send(_ parts: RequestPart...) -> Bool {
    for part in parts {
      guard self.order.messages?.isBusy != true, self.hasRoom(at: 0) else { return false }
      self.order.messages?.note(part)
      self.send(part, at: 0)
      self.move()
    }
    return true
  }

  func hasRoom(at index: Int) -> Bool {
    if self.order.isCut(at: index) { return true }
    if index == self.count { return self.wireRoom > 0 }
    if index == self.order.codec { return self.order.bytes?.isBusy != true && self.hasRoom(at: index + 1) }
    return self.order.stages[index].hasRoomForRequest(at: index, in: self.order)
  }

  private func begin(atMessages: Bool, _ part: RequestPart) {
    self.order.begin(atMessages: atMessages, with: part, ReplayLog(maximumBytes: self.maximumReplayBytes))
  }

  private func send(_ part: RequestPart, at first: Int) {
    var part = part
    for index in first..<max(first, self.count) {
      if self.order.isCut(at: index) { return }
      if index == self.order.codec {
        if part.head != nil {
          self.begin(atMessages: false, part)
        } else {
          self.order.bytes?.note(part)
        }
        continue
      }
      let states = self.states
      let mayPass = HookWindow.isClear(states[index].requests) && self.hasRoom(at: index + 1)
      let step: Stage.RequestStep
      if part.hasHead { states.holdHead(at: index) }
      switch self.onRequest(index, part) {
      case .none: step = states.pass(part, at: index, mayPass: mayPass)
      case .does(.send(let sent)) where mayPass:
        step = .pass(states.passed(sent, inPlaceOf: part, at: index, self.form(at: index)))
      case .does(let action):
        step = states.didReturn(action, given: part, at: index, self.form(at: index), mayPass: mayPass)
      case .waits:
        let number = self.takeNumber()
        states.wait(part, at: index, as: number)
        self.order.mayKeep = true
        self.visits.append(Visit(isRequest: true, index: index, number: number, part: part.name))
        return
      }
      switch step {
      case .pass(let passed): part = passed
      case .stay:
        self.order.mayKeep = true
        return
      case .answer(let results):
        self.answer(at: index, results)
        return
      }
    }
    guard !self.order.isCut(at: self.count) else { return }
    self.wireRoom -= 1
    self.wire.append(part.name)
  }

  func answer(at index: Int, _ results: [ResultPart]) {
    _ = self.order.close(insideOf: index - 1, cuttingAt: index)
    self.dropCount += 1
    self.order.setAnswer(results, at: index)
  }

  // MARK: Up

  /// Whether the wire may bring a result.
  var wantsResult: Bool {
    self.order.cut == nil && !self.order.isWaitingToRetry && self.demand > 0
      && (0..<self.count).allSatisfy {
        $0 == self.order.codec || self.order.stages[$0].hasRoomForResult(at: $0, in: self.order)
      }
  }

  /// Brings results from the wire.
  func receive(_ results: ResultPart...) {
    for result in results {
      self.receive(result, at: self.count - 1)
      self.move()
    }
  }

  private func hasRoomForResult(at index: Int) -> Bool {
    if index < 0 { return self.demand > 0 }
    return index == self.order.codec
      ? self.hasRoomForResult(at: index - 1)
      : self.order.stages[index].hasRoomForResult(at: index, in: self.order)
  }

  private func receive(_ result: ResultPart, at last: Int) {
    var result = result
    for index in stride(from: last, through: 0, by: -1) where index != self.order.codec {
      let states = self.states
      guard states.accept(result, at: index) else { return }
      let mayPass = HookWindow.isClear(states[index].results) && self.hasRoomForResult(at: index - 1)
      let step: Stage.ResultStep
      var number = 0
      switch self.onResult(index, result) {
      case .none: step = states.pass(result, at: index, mayPass: mayPass)
      case .does(.receive(let received)) where mayPass && received.isEnd == result.isEnd:
        step = .pass(states.passed(received, at: index, self.form(at: index)))
      case .does(let action):
        let visit = self.takeNumber()
        if case .retry = action { number = visit }
        step = states.didReturn(
          action,
          given: result,
          visit,
          at: index,
          self.form(at: index),
          mayPass: mayPass
        )
      case .waits:
        let number = self.takeNumber()
        states.wait(result, at: index, as: number)
        self.order.mayKeep = true
        self.visits.append(Visit(isRequest: false, index: index, number: number, part: result.name))
        return
      }
      guard let passed = self.follow(step, at: index, number) else { return }
      result = passed
    }
    self.demand -= 1
    self.delivered.append(result.name)
  }

  private func takeNumber() -> Int {
    self.lastNumber += 1
    return self.lastNumber
  }

  private func follow(_ step: Stage.ResultStep, at index: Int, _ number: Int) -> ResultPart? {
    if case .pass(let result) = step { return result }
    self.order.mayKeep = true
    switch step {
    case .pass, .stay: return nil
    case .end:
      _ = self.order.close(insideOf: index, cuttingAt: index)
      self.dropCount += 1
    case .retry(let request, _):
      guard let head = self.order.retryHead(request, at: index) else {
        self.states.retryWasRefused(number, at: index)
        return nil
      }
      _ = self.order.waitToRetry(for: index)
      self.dropCount += 1
      self.retries.append(Retry(index: index, head: head, epoch: self.order.epoch))
    case .restart:
      _ = self.order.waitToRetry(for: index, from: .start, ReplayLog(maximumBytes: .max))
      self.dropCount += 1
    }
    return nil
  }

  // MARK: Later

  /// The visit that waits with this part, the outermost one first.
  func visit(_ part: String, at index: Int? = nil) -> Visit? {
    self.visits.last { $0.part == part && (index == nil || $0.index == index) }
  }

  /// A hook that has returned proceeds.
  ///
  /// - Returns: Whether that counts.
  @discardableResult
  func proceed(_ visit: Visit?, _ action: HookAction) -> Bool {
    guard let visit else { return false }
    let form = self.form(at: visit.index)
    if visit.isRequest {
      guard let step = self.states.didRequest(action, visit.number, at: visit.index, form) else {
        return false
      }
      if case .answer(let results) = step { self.answer(at: visit.index, results) }
    } else {
      guard let step = self.states.didResult(action, visit.number, at: visit.index, form) else {
        return false
      }
      _ = self.follow(step, at: visit.index, visit.number)
    }
    self.visits.removeAll { $0 == visit }
    self.move()
    return true
  }

  /// Does not remember a visit any more, which does not count.
  func forget(_ visit: Visit) {
    self.visits.removeAll { $0 == visit }
  }

  /// The delay of the oldest retry is over.
  ///
  /// - Returns: Whether the retry counts.
  @discardableResult
  func retryIsDue() -> Bool {
    guard !self.retries.isEmpty else { return false }
    let retry = self.retries.removeFirst()
    let counts = self.order.retry(for: retry.index, with: retry.head, in: retry.epoch)
    self.move()
    return counts
  }

  /// Moves everything that can move.
  func move() {
    // Each round moves something, and nothing moves in circles.
    for _ in 0..<10_000 where !self.moveOnce() { return }
  }

  private func moveOnce() -> Bool {
    var hasMoved = false
    for index in 0..<self.count where index != self.order.codec && self.hasRoomForResult(at: index - 1) {
      guard let result = self.order.stages[index].takeReadyResult(at: index, in: self.order) else { continue }
      hasMoved = true
      self.receive(result, at: index - 1)
    }
    if let entry = self.order.answerEntry, self.hasRoomForResult(at: entry),
      let result = self.order.takeAnswer()
    {
      hasMoved = true
      self.receive(result, at: entry)
    }
    self.order.settle()
    for index in (0..<self.count).reversed() where index != self.order.codec && self.hasRoom(at: index + 1) {
      guard let part = self.order.stages[index].takeReadyRequest(at: index, in: self.order) else { continue }
      hasMoved = true
      self.send(part, at: index + 1)
    }
    for atMessages in [false, true] {
      let first = atMessages ? 0 : self.order.codec + 1
      let level = atMessages ? self.order.messages : self.order.bytes
      while level?.isBusy == true, self.hasRoom(at: first),
        let part = level?.takeReplay()
      {
        hasMoved = true
        self.send(part, at: first)
      }
    }
    return hasMoved
  }
}

// MARK: - Parts

extension RequestPart {
  static func head(_ path: String) -> RequestPart {
    let url = RequestURL(origin: Origin(scheme: .http, host: "order.test", port: 80), path: path)
    return .head(HTTPRequest(url: url, contentType: "text").head)
  }

  static func text(_ text: String) -> RequestPart { .message(MessageBox(Text(text))) }

  /// The head's path, the message's text, or `end`.
  var name: String {
    switch self {
    case .whole(let head, _), .wholeBytes(let head, _), .head(let head): head.url.path
    case .message(let message): MessageBox<Text>.of(message).message.text
    case .bytes(let bytes): String(buffer: bytes)
    case .end: "end"
    }
  }
}

extension ResultPart {
  static func text(_ text: String) -> ResultPart { .message(MessageBox(Text(text))) }

  static var end: ResultPart { .end(nil, trailers: Headers()) }

  static func failed(_ code: Code) -> ResultPart { .failed(ConnectError(code: code)) }

  /// `headers`, the message's text, or the end and its code.
  var name: String {
    switch self {
    case .headers: "headers"
    case .message(let message): MessageBox<Text>.of(message).message.text
    case .bytes(let bytes): String(buffer: bytes)
    case .end(let error, _): error.map { "end \($0.code)" } ?? "end"
    case .whole(let response): response.error.map { "whole \($0.code)" } ?? "whole"
    case .wholeBytes(let response): response.error.map { "bytes \($0.code)" } ?? "bytes"
    }
  }
}

extension PipelineOrder {
  /// What the hook of a stage has and has not passed on.
  func held(at index: Int) -> HookHolder.Held? { HookHolders(in: self).holder(at: index)?.held }

  /// Counts the bytes that a message turned out to have.
  func charge(_ byteCount: Int) {
    self.messages?.charge(byteCount)
    self.bytes?.charge(byteCount)
  }
}
