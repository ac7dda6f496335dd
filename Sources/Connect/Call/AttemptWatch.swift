internal import NIOCore

/// Tells the observers of a call what happens to one attempt. Confined to the call's executor.
final class AttemptWatch {
  private let observers: AttemptObservers
  private let number: Int
  private var kind: AttemptKind
  private let wire: any WireProtocol
  private let isEnveloped: Bool
  /// When the attempt started; nil before, and once observers know, or will know, of the end.
  private var startTime: Duration?
  /// When the attempt ended on the wire; nil before.
  private var endTime: Duration?
  private var sentBytes = 0
  private var received: MessageByteCount

  private init(_ observers: AttemptObservers, number: Int, _ kind: AttemptKind, _ plan: CallPlan) {
    let wire = plan.environment.wire
    self.observers = observers
    self.number = number
    self.kind = kind
    self.wire = wire
    let isEnveloped = wire.envelopesMessages(of: plan.info.streamType)
    self.isEnveloped = isEnveloped
    self.received = MessageByteCount(isEnveloped: isEnveloped, isBase64: wire.sendsBase64)
  }

  /// A watch for the attempt that starts now.
  ///
  /// - Parameter replaced: That of the attempt which the new one replaces.
  /// - Returns: Nil if nothing observes the attempts of the call. Check this before, since that is the rule.
  @inline(never)
  static func make(
    _ attempts: Attempts,
    _ plan: CallPlan,
    isHedge: Bool,
    replacing replaced: AttemptWatch?
  ) -> AttemptWatch? {
    guard let observers = attempts.observers else { return nil }
    // Attempts that did not get to the network were no attempts.
    let other: AttemptKind = observers.haveSeenAttempt ? .retry : .original
    let kind = replaced != nil ? .transparentRetry : isHedge ? .hedge : other
    return AttemptWatch(observers, number: replaced?.number ?? attempts.number, kind, plan)
  }

  /// The attempt is about to start, perhaps once more.
  ///
  /// - Parameter body: With the message, if that goes with the head.
  func start(sending body: HTTPStreamRequest.Body, _ call: Call) {
    let now = call.executor.now
    self.startTime = now
    self.endTime = nil
    self.sentBytes = 0
    if case .complete(let message) = body { self.didSend(message) }
    self.received = MessageByteCount(isEnveloped: self.isEnveloped, isBase64: self.wire.sendsBase64)
    let idleTime = self.observers.begin(at: now)
    self.observers.tell(.started(AttemptStart(number: self.number, kind: self.kind, idleTime: idleTime)))
  }

  /// A message was written, in this piece of the body.
  func didSend(_ piece: ByteBuffer) {
    let size = self.wire.sendsBase64 ? Base64.decodedLength(ofPadded: piece) : piece.readableBytes
    self.sentBytes += max(size - (self.isEnveloped ? Envelope.prefixLength : 0), 0)
  }

  /// The body has messages if it is one of the protocol, and not a page or an error of a proxy.
  func didReceive(_ head: HTTPResponseHead, to request: RequestHead) {
    self.received.isCounting = head.status == 200 && head.answers(request.contentType, over: self.wire)
  }

  func didReceive(_ bytes: ByteBuffer) { self.received.add(bytes) }

  /// The end on the wire, whose code is known once the response is read.
  func didEndOnWire(_ call: Call) { self.endTime = call.executor.now }

  /// Tells the observers of the end. Should the attempt start once more, that is a transparent retry.
  fileprivate func end(_ code: Code, _ call: Call) {
    guard let record = self.takeRecord(code, call) else { return }
    self.observers.tell(.ended(record))
  }

  /// Tells the observers of the end in a later job of the executor.
  func endLater(_ code: Code, _ attempts: Attempts, _ call: Call) {
    guard let record = self.takeRecord(code, call) else { return }
    attempts.pendingMetrics += 1
    let here = Confined((self.observers, attempts), to: call.executor)
    call.executor.execute {
      here.value.1.pendingMetrics -= 1
      here.value.0.tell(.ended(record))
    }
  }

  /// - Returns: Nil if the attempt is not running.
  private func takeRecord(_ code: Code, _ call: Call) -> AttemptRecord? {
    guard let startTime = self.startTime.take() else { return nil }
    let endTime = self.endTime ?? call.executor.now
    self.observers.end(at: endTime)
    defer { self.kind = .transparentRetry }
    return AttemptRecord(
      number: self.number,
      kind: self.kind,
      code: code,
      duration: endTime - startTime,
      sentMessageBytes: self.sentBytes,
      receivedMessageBytes: self.received.total
    )
  }
}

extension AttemptWatch? {
  /// Tells the observers, if there are any, that the attempt has ended.
  ///
  /// - Returns: Whether the call goes on. An observer may end it.
  @inline(__always)
  func end(_ code: Code, _ call: Call) -> Bool {
    guard let self else { return true }
    self.end(code, call)
    return !call.isOver
  }
}

/// Counts the bytes of the messages in a response's body, without what frames them, wherever its chunks begin and end.
struct MessageByteCount {
  private let isEnveloped: Bool
  /// Nil if the body is not base64.
  private var base64: Base64StreamDecoder?
  /// Whether the body is one of messages, and not of an error.
  var isCounting = false
  private(set) var total = 0
  /// How many bytes of the present envelope's prefix have arrived.
  private var prefixCount = 0
  private var isMessage = false
  /// How many bytes of the present envelope are still to come, as far as its prefix is known.
  private var remaining = 0

  init(isEnveloped: Bool, isBase64: Bool = false) {
    self.isEnveloped = isEnveloped
    self.base64 = isBase64 ? Base64StreamDecoder() : nil
  }

  mutating func add(_ bytes: ByteBuffer) {
    guard self.isCounting else { return }
    var bytes = self.base64?.decode(bytes) ?? bytes
    guard self.isEnveloped else {
      self.total += bytes.readableBytes
      return
    }
    while bytes.readableBytes > 0 {
      if self.prefixCount < Envelope.prefixLength {
        self.addPrefix(bytes.readInteger(as: UInt8.self) ?? 0)
      } else {
        let count = min(self.remaining, bytes.readableBytes)
        bytes.moveReaderIndex(forwardBy: count)
        self.remaining -= count
        if self.isMessage { self.total += count }
      }
      if self.prefixCount == Envelope.prefixLength, self.remaining == 0 { self.prefixCount = 0 }
    }
  }

  private mutating func addPrefix(_ byte: UInt8) {
    if self.prefixCount == 0 {
      // All other flags say that the envelope is the end of the response.
      self.isMessage = byte & ~Envelope.compressedFlag == 0
    } else {
      self.remaining = self.remaining << 8 | Int(byte)
    }
    self.prefixCount += 1
  }
}
