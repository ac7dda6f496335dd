internal import DequeModule

/// One run of the body of an ``AsyncStreamStage``: from a request's head to the end, or to a new attempt that
/// begins further out and has another run.
///
/// Confined to the call's executor, which makes it `Sendable`.
final class AsyncStreamRun<RequestMessage: Sendable, ResponseMessage: Sendable>: @unchecked Sendable {
  /// Keeps the call alive while the body runs.
  let call: Call
  let head: HTTPRequest<Void>
  var job: Job?

  /// Messages from outside, in order, from the first on while they are few enough to be kept.
  var messages: Deque<RequestMessage> = []
  /// The number of the first one in ``messages``.
  var firstMessage = 0
  var hasRequestEnded = false
  var reader: AsyncStreamReader<RequestMessage>?
  /// What messages that have been encoded came to, in this attempt and in the longest one.
  private var attemptBytes = 0
  private var replayBytes = 0

  var next: AsyncStreamAttempt<RequestMessage, ResponseMessage>?
  var hasCalledNext = false
  /// How the last attempt ended.
  var lastError: ConnectError?

  /// What goes on outwards.
  var results: Deque<StreamResult<ResponseMessage>> = []
  var hasPassedOut = false
  var isClosed = false
  /// Waits until a result is asked for.
  var demand: Mailbox<Void>?
  /// Whether a result was asked for that has not come yet.
  var isWanted = false

  init(call: Call, head: HTTPRequest<Void>) {
    self.call = call
    self.head = head
  }

  /// Counts the bytes that messages turned out to have against what may be kept of them.
  func charge(_ byteCount: Int) {
    self.attemptBytes += byteCount
    self.replayBytes = max(self.replayBytes, self.attemptBytes)
  }

  /// Begins to count anew, since the messages are sent again.
  func restartCount() {
    self.attemptBytes = 0
  }

  /// Lets go of messages that were read, if no other `next` can have them.
  func trim() {
    let maximumBytes = self.call.client.config.retries.maximumReplayBytes
    guard
      self.hasPassedOut || self.firstMessage > 0 || self.messages.count > 1024
        || self.replayBytes > maximumBytes
    else { return }
    let read = min((self.reader?.position ?? 0) - self.firstMessage, self.messages.count)
    guard read > 0 else { return }
    self.messages.removeFirst(read)
    self.firstMessage += read
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
final class AsyncStreamReader<RequestMessage: Sendable>: @unchecked Sendable {
  var position = 0
  var waiting: Mailbox<RequestMessage?>?

  func end(throwing error: any Error) {
    self.waiting?.post(.failure(error))
    self.waiting = nil
  }
}

/// What one `next` of a stream's interceptor has started. Confined to the call's executor.
final class AsyncStreamAttempt<RequestMessage: Sendable, ResponseMessage: Sendable>: @unchecked Sendable {
  /// Runs the jobs of async stages inside, where `next` was called.
  let runner: Mailbox<Void>
  var sender: Job?
  /// Parts of the request to go on inwards.
  var parts: Deque<RequestPart<RequestMessage>> = []
  /// Waits until they have gone on.
  var room: Mailbox<Void>?
  /// Waits for a result from inside.
  var waiting: Mailbox<StreamResult<ResponseMessage>?>?
  /// Whether nothing more comes from inside.
  private(set) var hasEnded = false
  /// Whether that is so since it was cancelled.
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
    self.parts.removeAll()
    self.room?.post(.failure(CancellationError()))
    self.room = nil
    self.waiting?.post(.failure(CancellationError()))
    self.waiting = nil
  }
}
