internal import Connect
internal import DequeModule
private import Dispatch
internal import NIOCore
internal import Synchronization

#if canImport(Musl)
internal import Musl
#else
internal import Glibc
#endif

/// Shows what goes over the wire: heads, chunks, ends and failures of the exchanges that a ``WireTapInterceptor`` sees.
///
/// ```swift
/// let tap = WireTap(writingTo: 2)  // standard error
/// let transport = WireHTTPClient(
///   NIOHTTPClient(),
///   interceptors: [{ exchange in WireTapInterceptor(tap, exchange) }],
///   authenticatesClient: false
/// )
/// ```
///
/// Calls never wait for a tap. Records wait for the sink in a queue, and a task outside of calls hands them over one after the
/// other. A record that does not fit is dropped; the next that fits says how many were.
public final class WireTap: Sendable {
  /// What a tap shows, and how much may wait.
  public struct Options: Sendable {
    /// How many bytes of each body are shown, of each exchange. Others are counted.
    public var bodyBytes: Int
    /// How many records may wait for the sink.
    public var waitingRecords: Int
    /// How many bytes the waiting records may have, with 256 for each record itself.
    public var waitingBytes: Int
    /// The names of headers and trailers whose values are replaced by `<redacted>`, in any case; besides those that an
    /// interceptor has named in ``SensitiveHeaders``.
    public var redactedHeaders: Set<String> {
      didSet { self.redactedHeaders = Set(self.redactedHeaders.map { $0.lowercased() }) }
    }

    /// Options as given; what is left out is as in ``defaults``.
    public init(
      bodyBytes: Int = 1024,
      waitingRecords: Int = 1000,
      waitingBytes: Int = 1 << 20,
      redactedHeaders: Set<String> = CallLog.Options.redactedHeaders
    ) {
      self.bodyBytes = bodyBytes
      self.waitingRecords = waitingRecords
      self.waitingBytes = waitingBytes
      self.redactedHeaders = Set(redactedHeaders.map { $0.lowercased() })
    }

    /// 1 KiB of each body, 1,000 records and 1 MiB that wait, and the headers that logs redact.
    public static var defaults: Options { Options() }
  }

  fileprivate struct State {
    var records: Deque<WireRecord> = []
    var size = 0
    var dropped = 0
    var allDropped = 0
    var isDraining = false
    /// Records that the sink was given; all but the last are done.
    var taken = 0
    var waiters: [(target: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  let options: Options
  private let sink: @Sendable (WireRecord) async -> Void
  private let state = Mutex(State())
  private let exchanges = Atomic<UInt64>(0)
  private let executor = SinkExecutor()

  /// A tap that hands its records over.
  ///
  /// - Parameters:
  ///   - options: What is shown, and how much may wait.
  ///   - records: The sink, called with one record at a time. It may wait; meanwhile records wait in the queue.
  public init(_ options: Options = .defaults, records: @escaping @Sendable (WireRecord) async -> Void) {
    self.options = options
    self.sink = records
  }

  /// A tap that writes lines for people.
  ///
  /// - Parameters:
  ///   - options: What is shown, and how much may wait.
  ///   - lines: Called with one or more lines at a time, each with its line end. It may take its time.
  public convenience init(_ options: Options = .defaults, lines: @escaping @Sendable (String) -> Void) {
    self.init(options, records: { record in lines(record.description) })
  }

  /// A tap that writes lines for people to a file.
  ///
  /// - Parameters:
  ///   - file: A file descriptor, such as that of a `FileHandle`, which stays open. What cannot be written is lost.
  ///   - options: What is shown, and how much may wait.
  public convenience init(writingTo file: CInt, _ options: Options = .defaults) {
    self.init(options, lines: { lines in Self.writeAll(lines, to: file) })
  }

  /// How many records were dropped, since the sink was too slow.
  public var droppedRecords: Int { self.state.withLock { $0.allDropped } }

  /// Waits until the sink has got all records so far.
  public func flush() async {
    await withCheckedContinuation { continuation in
      let isIdle = self.state.withLock { state in
        if state.isDraining {
          let target = state.taken + state.records.count + (state.dropped > 0 ? 1 : 0)
          state.waiters.append((target, continuation))
        }
        return !state.isDraining
      }
      if isIdle { continuation.resume() }
    }
  }

  func makeNumber() -> UInt64 { self.exchanges.add(1, ordering: .relaxed).newValue }

  func add(_ record: WireRecord) {
    guard self.state.withLock({ $0.add(record, self.options) }) else { return }
    Task.detached(executorPreference: self.executor) { await self.drain() }
  }

  private func drain() async {
    while let record = self.takeNext() { await self.sink(record) }
  }

  private func takeNext() -> WireRecord? {
    let (record, waiters) = self.state.withLock { $0.takeNext() }
    for waiter in waiters { waiter.resume() }
    return record
  }

  private static func writeAll(_ lines: String, to file: CInt) {
    var bytes = Array(lines.utf8)[...]
    while !bytes.isEmpty {
      let count = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      if count > 0 {
        bytes = bytes.dropFirst(count)
      } else if errno != EINTR {
        return
      }
    }
  }
}

extension WireTap.State {
  /// Adds a record, or counts it as dropped.
  ///
  /// - Returns: Whether a task has to be started that hands records over.
  fileprivate mutating func add(_ record: WireRecord, _ options: WireTap.Options) -> Bool {
    guard self.records.count < options.waitingRecords, self.size + record.size <= options.waitingBytes else {
      self.dropped += 1
      self.allDropped += 1
      return false
    }
    if let count = self.takeDropped() { self.records.append(count) }
    self.records.append(record)
    self.size += record.size
    defer { self.isDraining = true }
    return !self.isDraining
  }

  /// The next record, and those who waited until the sink had got the one before.
  fileprivate mutating func takeNext() -> (WireRecord?, [CheckedContinuation<Void, Never>]) {
    let done = self.waiters.filter { $0.target <= self.taken }.map(\.continuation)
    self.waiters.removeAll { $0.target <= self.taken }
    if let record = self.records.popFirst() {
      self.taken += 1
      if record.exchange > 0 { self.size -= record.size }
      return (record, done)
    }
    // Records of another exchange may never come, so it is said now.
    if let count = self.takeDropped() {
      self.taken += 1
      return (count, done)
    }
    self.isDraining = false
    defer { self.waiters = [] }
    return (nil, done + self.waiters.map(\.continuation))
  }

  private mutating func takeDropped() -> WireRecord? {
    guard self.dropped > 0 else { return nil }
    defer { self.dropped = 0 }
    return WireRecord(exchange: 0, time: .zero, event: .dropped(self.dropped))
  }
}

/// Runs the sink of a tap, which may block, on a queue of its own.
private final class SinkExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "WireTap")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    self.queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
