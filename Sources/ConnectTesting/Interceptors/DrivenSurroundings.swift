internal import Connect
internal import DequeModule
internal import NIOCore

/// What is around a driven pipeline: the test, in place of the caller and the wire. Confined to the driver's executor.
final class DrivenSurroundings<OfRequest: Sendable, OfMessage: Sendable, OfResult: Sendable>: PipelineOutside,
  PipelineInside
{
  typealias Notes = AsyncNotes<OfRequest, OfMessage, OfResult>

  private let executor: VirtualExecutor
  private let maximumRetries: Int
  /// On the executor's clock; nil without a deadline.
  private let deadline: Duration?
  private(set) var metricsHooks: [MetricsReport.Hook] = []
  /// For the async form.
  var notes: Notes?

  /// Parts of the request that the pipeline has not taken yet.
  var outgoing: Deque<(RequestPart, HookRecord<OfMessage>?)> = []
  /// Results that the pipeline has not taken yet.
  var arrived: Deque<(ResultPart, HookRecord<OfResult>)> = []
  /// Whether the request has passed the interceptor, and its response has not ended.
  private var isOnWire = false

  // The records of values on their way to a hook.
  var request: HookRecord<OfRequest>?
  var message: HookRecord<OfMessage>?
  var result: HookRecord<OfResult>?
  var metrics: HookRecord<HTTPMetrics>?

  /// How many functions of the pipeline are on the stack, and what to do once there is none.
  var depth = 0
  var afterwards: Deque<() -> Void> = []
  /// Whether the call has ignored what a hook proceeded with.
  var wasIgnored = false
  /// How many retries, of hooks and by `next`, were taken from the cap.
  private var retryCount = 0
  /// How many retries of hooks were granted, of which the cap is one condition.
  private(set) var grantCount = 0
  private var retryTimer: (any CallTimer)?

  init(_ plan: DrivenPlan) {
    self.executor = plan.executor
    self.maximumRetries = plan.config.retries.maximumRetries
    self.deadline = plan.config.timeout.map { plan.executor.now + $0.clamped }
  }

  /// The call is over.
  func end() {
    self.isOnWire = false
    self.retryTimer.take()?.cancel()
    self.notes?.end()
    for (_, record) in self.outgoing { record?.report(.notWaiting) }
    for (_, record) in self.arrived { record.report(.notWaiting) }
    self.outgoing = []
    self.arrived = []
    self.metricsHooks = []
  }

  // MARK: PipelineOutside

  var hasOutgoing: Bool { !self.outgoing.isEmpty }

  func takeOutgoing(isObsolete: @autoclosure () -> Bool) -> RequestPart? {
    guard let (part, record) = self.outgoing.popFirst() else { return nil }
    self.message.take()?.report(.notWaiting)
    if self.notes == nil { self.message = record }
    return part
  }

  func outgoingWasTaken() {}

  var demand: Int { 1 }

  func deliver(_ result: ResultPart) { self.notes?.pass(result) }

  func run(_ job: Job, on executor: any CallExecutor) { job.start(on: executor) }

  // MARK: PipelineInside

  var running: (any PipelineAttempt)? { nil }
  var httpStatus: Int? { nil }

  func transmit(_ part: consuming RequestPart, _ host: any PipelineHost) {
    switch copy part {
    case .whole, .wholeBytes, .head: self.isOnWire = true
    case .message, .bytes, .end: break
    }
    self.notes?.pass(part, at: self.executor.now)
  }

  func takeArrived(_ host: any PipelineHost, forByteHooks: Bool) -> ResultPart? {
    guard self.isOnWire else { return nil }
    self.notes?.willReadResult()
    guard let (part, record) = self.arrived.popFirst() else { return nil }
    if part.isEnd { self.isOnWire = false }
    self.result.take()?.report(.notWaiting)
    if let notes = self.notes {
      notes.didRead(result: record, at: self.executor.now)
    } else {
      self.result = record
    }
    return part
  }

  /// Results that were given and not taken are lost with their attempt.
  func drop() {
    guard self.isOnWire else { return }
    self.isOnWire = false
    let arrived = self.arrived
    self.arrived = []
    // Reported afterwards: the end that an async interceptor gives is noted first, for the first of these results.
    self.afterwards.append { for (_, record) in arrived { record.report(.notWaiting) } }
  }

  func takeRetry(after delay: Duration, _ host: any PipelineHost) -> Bool {
    let limits = RetryLimits(
      maximumRetries: self.maximumRetries,
      remainingTime: self.deadline.map { $0 - self.executor.now }
    )
    guard !host.isOver, limits.allowRetry(after: delay, count: self.retryCount) else { return false }
    self.retryCount += 1
    return true
  }

  func afterDelay(_ delay: Duration, _ host: any PipelineHost, _ work: @escaping () -> Void) {
    self.grantCount += 1
    guard delay > .zero else {
      work()
      return
    }
    self.retryTimer?.cancel()
    let here = Confined(work, to: self.executor)
    self.retryTimer = self.executor.schedule(after: delay.clamped) {
      if !host.isOver { here.value() }
    }
  }

  func add(_ hooks: [MetricsReport.Hook]) { self.metricsHooks = hooks }
}

/// Leaves messages as they are on their way through the codec.
final class DrivenCodec: PipelineCodec {
  private let isBytes: Bool

  init(isBytes: Bool) {
    self.isBytes = isBytes
  }

  func encode(_ part: consuming RequestPart, forByteHooks: Bool) throws(ConnectError) -> RequestPart {
    guard self.isBytes else { return part }
    return switch consume part {
    case .whole(let head, let message): .wholeBytes(head, MessageBox<ByteBuffer>.of(message).message)
    case .message(let message): .bytes(MessageBox<ByteBuffer>.of(message).message)
    case .wholeBytes(let head, let bytes): .wholeBytes(head, bytes)
    case .head(let head): .head(head)
    case .bytes(let bytes): .bytes(bytes)
    case .end: .end
    }
  }

  func decode(
    _ result: consuming ResultPart,
    _ httpStatus: @autoclosure () -> Int?
  ) throws(ConnectError) -> ResultPart { result }
}
