internal import DequeModule

/// One run of the body of an ``AsyncStreamStage``, from a request's head to the end. A new attempt that begins further
/// out starts another run.
///
/// Confined to the call's executor.
final class AsyncStreamRun {
  private static var maximumUnreadMessages: Int { 16 }

  /// Keeps the call alive while the body runs.
  let call: Call
  let head: RequestHead
  var job: Job?

  /// Messages from outside, in order. They begin with the first one while they are within the limits for a retry.
  var messages: Deque<any AnyMessage> = []
  /// The number of the first message in ``messages``.
  var firstMessage = 0
  var hasRequestEnded = false
  var reader: AsyncStreamReader?
  /// The encoded bytes of messages, in this attempt and in the longest attempt.
  private var attemptBytes = 0
  private var replayBytes = 0
  private let maximumReplayBytes: Int

  var next: AsyncStreamNext?
  var hasCalledNext = false
  /// How the last attempt ended.
  var lastEnd: ResultPart?
  var lastError: ConnectError? { self.lastEnd?.error }

  /// Results that go on outwards.
  var results: Deque<ResultPart> = []
  var hasPassedOut = false
  var isClosed = false
  /// Waits until a result is wanted.
  var demand: Mailbox<Void>?
  /// Whether a requested result has not arrived yet.
  var isWanted = false

  init(_ call: Call, head: RequestHead, maximumReplayBytes: Int) {
    self.call = call
    self.head = head
    self.maximumReplayBytes = maximumReplayBytes
  }

  /// Whether fewer than the maximum of messages are unread.
  var hasRoomForMessage: Bool {
    let read = (self.reader?.position ?? self.firstMessage) - self.firstMessage
    return self.messages.count - read < Self.maximumUnreadMessages
  }

  /// Counts the encoded bytes of messages against the limit of what is kept for a retry.
  func charge(_ byteCount: Int) {
    self.attemptBytes += byteCount
    self.replayBytes = max(self.replayBytes, self.attemptBytes)
  }

  /// Restarts the count, since the messages are sent again.
  func restartCount() {
    self.attemptBytes = 0
  }

  /// Releases messages that were read, if no other `next` can read them.
  func trim() {
    guard
      self.hasPassedOut || self.firstMessage > 0 || self.messages.count > 1024
        || self.replayBytes > self.maximumReplayBytes
    else { return }
    // One by one: releasing a message may run code of users that re-enters this object.
    while let reader = self.reader, reader.position > self.firstMessage,
      let message = self.messages.popFirst()
    {
      self.firstMessage += 1
      withExtendedLifetime(message) {}
    }
  }

  func cancel() {
    self.job?.cancel()
    self.job = nil
    self.reader?.end(throwing: CancellationError())
    self.reader = nil
    self.next?.cancel()
    self.next = nil
    self.demand?.post(.failure(CancellationError()))
    self.demand = nil
  }
}

/// One iteration over the messages of a stream's request. Confined to the call's executor.
final class AsyncStreamReader {
  var position = 0
  var waiting: Mailbox<(any AnyMessage)?>?

  func end(throwing error: any Error) {
    self.waiting?.post(.failure(error))
    self.waiting = nil
  }
}

/// The state of one `next` of a stream's interceptor. Confined to the call's executor.
final class AsyncStreamNext {
  /// Runs the jobs of async stages inside, where `next` was called.
  let runner: Mailbox<Void>
  var sender: Job?
  /// Parts of the request to go on inwards.
  var parts: Deque<RequestPart> = []
  /// Waits until ``parts`` have gone on.
  var room: Mailbox<Void>?
  /// Waits for a result from inside.
  var waiting: Mailbox<ResultPart?>?
  /// Whether nothing more comes from inside.
  private(set) var hasEnded = false
  /// Whether it has ended by a cancellation.
  private(set) var isGivenUp = false

  init(runner: Mailbox<Void>) {
    self.runner = runner
  }

  /// The end has come from inside.
  func end() {
    self.hasEnded = true
    self.sender?.cancel()
    self.sender = nil
    self.runner.post(.success(()))
  }

  func cancel() {
    guard !self.isGivenUp else { return }
    self.isGivenUp = true
    self.end()
    let parts = self.parts
    self.parts = []
    withExtendedLifetime(parts) {}
    self.room?.post(.failure(CancellationError()))
    self.room = nil
    self.waiting?.post(.failure(CancellationError()))
    self.waiting = nil
  }
}
