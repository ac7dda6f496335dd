internal import Connect
internal import SwiftProtobuf

/// The callers of a run: they begin calls, cancel them, and get the outcomes.
///
/// Confined to the thread of the exploration.
final class RunCallers {
  typealias Text = Google_Protobuf_StringValue

  /// When a call begins.
  enum Begin {
    case afterPieces(Int)
    /// After the end of the call before, and this time.
    case afterEnd(Duration)
    /// After the end of the call before, and all work that needs no time then.
    case afterRest
  }

  struct Caller {
    var call: ExploredCall
    /// What it sends; in streams with the number of the message.
    let text: String
    let begin: Begin
    let timeout: Duration?
    let neighbour: Neighbour
    var hasBegun = false
    var cancel: (() -> Void)?
    /// Whether the explorer's neighbour has failed the request.
    var wasFailedByNeighbour = false

    var isOpen: Bool { self.hasBegun && self.call.endTime == nil }
  }

  private(set) var callers: [Caller] = []
  private var makeClient: ((_ call: Int) -> ProtocolClient)?
  private let method: MethodSpec<Text, Text>

  init(_ method: StreamType, _ idempotency: IdempotencyLevel) {
    self.method = MethodSpec(
      path: "/explorer.v1.ExplorerService/\(method.explorerName)",
      streamType: method,
      idempotencyLevel: idempotency
    )
  }

  /// The number of the call that begins, while its interceptors are made.
  private(set) var beginning = 0

  /// Chooses how the calls begin.
  ///
  /// - Parameters:
  ///   - timeout: The configuration's.
  ///   - makeClient: The client of a call, with its number. The clients differ only in their loggers.
  func prepare(
    timeout: Duration?,
    in run: ExplorerRun,
    _ makeClient: @escaping (_ call: Int) -> ProtocolClient
  ) {
    self.makeClient = makeClient
    // Several calls of 100 years each would exceed the range of the clock.
    let timeout = timeout.map { min($0.clamped, RunLimits.timeout) }
    let requests = Self.requests(run.settings)
    for (number, request) in zip(1..., requests) {
      let begins = number == 1 ? [.afterPieces(0)] : Self.begins
      let begin = begins[run.choose(.begin, among: begins.count)]
      let hasTimeout = run.choose(.timeout, among: 2) == 0
      let neighbours = run.settings.hasNeighbours ? Neighbour.possible(for: run.method) : [.none]
      let neighbour = neighbours[run.choose(.neighbour, among: neighbours.count)]
      if neighbour != .none { run.log.cover("other interceptors: \(neighbour)") }
      // The explorer's deadlines differ, so that one passes before another.
      let limit = Duration.seconds(60) + .milliseconds(number)
      self.callers.append(
        Caller(
          call: ExploredCall(
            number: number,
            method: run.method,
            requestHeaders: request.headers,
            startTime: .zero
          ),
          text: request.text,
          begin: begin,
          timeout: hasTimeout ? timeout ?? limit : timeout.map { $0 + limit },
          neighbour: neighbour
        )
      )
    }
  }

  /// What the calls send. Different requests have different canaries, whatever the test sends in them; equal requests stay equal.
  private static func requests(_ settings: ExplorerSettings) -> [(text: String, headers: Headers)] {
    var requests: [(text: String, headers: Headers)] = []
    var results: [(text: String, headers: Headers)] = []
    for number in 1...settings.callCount {
      let request = settings.request?(number) ?? (text: "message of canary-\(number)", headers: [:])
      let first = requests.firstIndex { $0.text == request.text && $0.headers == request.headers }
      requests.append(request)
      results.append(request)
      guard !request.headers.contains(Self.canaryName) else { continue }
      results[number - 1].headers[Self.canaryName] = ["canary-\((first ?? number - 1) + 1)"]
    }
    return results
  }

  /// The header that tells whose request it is.
  static let canaryName = "x-canary"

  /// When calls after the first one begin. The first option is the boring one.
  private static let begins: [Begin] = [
    .afterPieces(0), .afterEnd(.zero), .afterPieces(1), .afterPieces(2), .afterPieces(3), .afterPieces(5),
    .afterPieces(8), .afterPieces(12), .afterEnd(.seconds(120)), .afterRest,
  ]

  /// The option with which calls take turns.
  static let optionOfTurns = RunCallers.begins.count - 1

  // MARK: State

  var areAllOver: Bool { self.callers.allSatisfy { $0.call.endTime != nil } }
  var open: [Int] { self.callers.filter(\.isOpen).map(\.call.number) }

  /// Whether a call has begun, and neither ended nor been cancelled.
  func isWaiting(_ number: Int) -> Bool {
    guard self.callers.indices.contains(number - 1) else { return false }
    let caller = self.callers[number - 1]
    return caller.isOpen && caller.call.cancelTime == nil
  }

  func hasTimeout(_ number: Int) -> Bool { self.callers[number - 1].timeout != nil }

  /// The first call that would not have ended `limit` after its cancellation, or after its beginning if it has no deadline.
  func firstOpen(longerThan limit: Duration, by time: Duration) -> ExploredCall? {
    self.callers.first { caller in
      guard caller.isOpen else { return false }
      if let cancelTime = caller.call.cancelTime { return cancelTime + limit < time }
      return caller.call.deadline == nil && caller.call.startTime + limit < time
    }?.call
  }

  /// The first call that has not ended; those that were not cancelled come first.
  func firstOpen() -> ExploredCall? {
    let open = self.callers.filter(\.isOpen).map(\.call)
    return open.first { $0.cancelTime == nil } ?? open.first
  }

  /// The calls as a test sees them; those that have begun.
  func calls(_ server: RunServer) -> [ExploredCall] {
    self.callers.filter(\.hasBegun).map { caller in
      var call = caller.call
      call.attempts = server.attempts(of: call.number)
      return call
    }
  }

  /// The end of the call that ended last.
  var lastEnd: Duration { self.callers.compactMap(\.call.endTime).max() ?? .zero }

  // MARK: Beginning

  /// Begins the calls whose turn it is.
  ///
  /// - Parameters:
  ///   - pieces: How many pieces of work have run since the last call began.
  ///   - isIdle: Whether nothing else is left to do without time.
  /// - Returns: Whether one has begun.
  func beginNext(after pieces: Int, isIdle: Bool, in run: ExplorerRun) -> Bool {
    guard let index = self.callers.firstIndex(where: { !$0.hasBegun }) else { return false }
    switch self.callers[index].begin {
    case .afterPieces(let count):
      guard pieces >= count || isIdle else { return false }
    case .afterRest:
      guard isIdle, self.callers[index - 1].call.endTime != nil else { return false }
    case .afterEnd(let delay):
      guard let end = self.callers[index - 1].call.endTime else { return false }
      guard run.executor.now >= end + delay else {
        if isIdle { _ = run.executor.schedule(after: end + delay - run.executor.now) {} }
        return isIdle
      }
    }
    self.begin(index, in: run)
    return true
  }

  private func begin(_ index: Int, in run: ExplorerRun) {
    let number = index + 1
    guard let client = self.makeClient?(number) else { return }
    let now = run.executor.now
    let caller = self.callers[index]
    self.callers[index].hasBegun = true
    self.callers[index].call.startTime = now
    if let timeout = caller.timeout {
      self.callers[index].call.deadline = now + max(timeout.clamped, .zero)
    }
    if self.callers.contains(where: { $0.isOpen && $0.call.number != number }) {
      run.log.cover("calls at the same time")
    }
    let text = caller.text
    run.log.tell(
      "begin",
      number,
      "call \(number) begins\(caller.timeout == nil ? ", without a deadline" : "")"
    )
    let options = self.options(of: caller, in: run)
    if run.method == .unary {
      self.callers[index].call.sent = [text]
      self.callUnary(index, client, text, options, in: run)
    } else {
      self.callStream(index, client, text, options, in: run)
    }
  }

  private func options(of caller: Caller, in run: ExplorerRun) -> CallOptions {
    var options = CallOptions()
    if !run.settings.optionChanges.isEmpty {
      for change in run.settings.optionChanges { change(caller.call.number, &options) }
      options.interceptors = run.instances.watched(options.interceptors)
      // What the explorer's server reads and writes.
      options.codec = nil
      options.context.deadline = nil
      options.responseParser = nil
      options.requestCompression = .inherited
    }
    options.headers = caller.call.requestHeaders
    options.timeout = caller.timeout
    options.context[ExplorerCallKey.self] = caller.call.number
    return options
  }

  private func callUnary(
    _ index: Int,
    _ client: ProtocolClient,
    _ text: String,
    _ options: CallOptions,
    in run: ExplorerRun
  ) {
    let here = Confined((callers: self, run: run))
    let method = self.method
    let task = Task(executorPreference: run.executor) {
      let (callers, run) = here.value
      // The interceptors are made before the first suspension.
      callers.beginning = index + 1
      run.executor.reasons.callBegins(at: run.executor.now, timeout: options.timeout)
      let response = await client.unary(method, Text(text), options: options)
      callers.end(index, in: run) { call in
        call.headers = response.headers
        call.trailers = response.trailers
        call.error = response.error
        if let message = response.message { call.received = [message.value] }
      }
    }
    self.callers[index].cancel = { task.cancel() }
  }

  // MARK: Streams

  private func callStream(
    _ index: Int,
    _ client: ProtocolClient,
    _ text: String,
    _ options: CallOptions,
    in run: ExplorerRun
  ) {
    let here = Confined((callers: self, run: run))
    self.beginning = index + 1
    run.executor.reasons.callBegins(at: run.executor.now, timeout: options.timeout)
    let handle: StreamHandle<Text, Text>
    switch run.method {
    case .clientStream:
      handle = client.clientStream(self.method, options: options) { response in
        let (callers, run) = here.value
        callers.end(index, in: run) { call in
          call.headers = response.headers
          call.trailers = response.trailers
          call.error = response.error
          if let message = response.message { call.received = [message.value] }
        }
      }
    case .serverStream:
      handle = client.openServerStream(self.method, options: options) {
        here.value.callers.receive($0, index, in: here.value.run)
      }
    case .bidirectionalStream, .unary:
      handle = client.bidirectionalStream(self.method, options: options) {
        here.value.callers.receive($0, index, in: here.value.run)
      }
    }
    self.callers[index].cancel = { handle.cancel() }
    let texts = run.method == .serverStream ? [text] : (1...3).map { "\(text) #\($0)" }
    for text in texts {
      run.executor.add(
        .closure {
          let (callers, run) = here.value
          guard callers.callers[index].isOpen else { return }
          callers.callers[index].call.sent.append(text)
          run.log.tell("send", index + 1, "call \(index + 1) sends “\(shortened(text))”")
          handle.send(Text(text))
        },
        lane: 10 + index
      )
    }
    run.executor.add(
      .closure {
        let (callers, run) = here.value
        guard callers.callers[index].isOpen else { return }
        run.log.tell("finish", index + 1, "call \(index + 1) ends its request")
        handle.finish()
      },
      lane: 10 + index
    )
  }

  private func receive(_ result: StreamResult<Text>, _ index: Int, in run: ExplorerRun) {
    let number = index + 1
    switch result {
    case .headers(let headers):
      run.log.tell("headers arrive", number, "call \(number) receives headers")
      self.callers[index].call.headers = headers
      self.callers[index].call.headersTime = run.executor.now
    case .message(let message):
      run.log.tell("message arrives", number, "call \(number) receives “\(shortened(message.value))”")
      self.callers[index].call.received.append(message.value)
    case .complete(_, let error, let trailers):
      self.end(index, in: run) { call in
        call.error = error
        call.trailers = trailers
      }
    }
  }

  // MARK: Ending

  private func end(_ index: Int, in run: ExplorerRun, _ change: (inout ExploredCall) -> Void) {
    guard self.callers[index].call.endTime == nil else {
      run.log.find("each call ends once", "call \(index + 1) has ended a second time")
      return
    }
    change(&self.callers[index].call)
    self.callers[index].call.endTime = run.executor.now
    self.callers[index].cancel = nil
    let call = self.callers[index].call
    run.log.cover("calls that ended with \(call.error?.code.name ?? "ok")")
    run.log.tell("end", call.number, "call \(call.number) ends: \(call.error.map { describe($0) } ?? "ok")")
  }

  func cancel(_ number: Int, _ why: String, in run: ExplorerRun) {
    let caller = self.callers[number - 1]
    guard caller.isOpen, caller.call.cancelTime == nil else { return }
    self.callers[number - 1].call.cancelTime = run.executor.now
    run.log.tell("cancel", number, "call \(number) is cancelled\(why)")
    caller.cancel?()
  }

  /// The caller gives up.
  func giveUp(_ number: Int, in run: ExplorerRun) {
    self.cancel(number, ": its caller has waited long enough", in: run)
  }

  func neighbourFailed(_ number: Int) {
    if self.callers.indices.contains(number - 1) { self.callers[number - 1].wasFailedByNeighbour = true }
  }

  /// Lets go of the client, and of all that calls hold.
  func release() {
    self.makeClient = nil
    for index in self.callers.indices { self.callers[index].cancel = nil }
  }
}
