package import Connect

/// The timers of an executor, the earliest first; timers of the same time in the order in which they were set. A binary
/// heap.
///
/// Calls set a timer for their deadline and nearly always cancel it. Each timer knows its place, so that cancelling
/// removes it at once. The heap stays as small as the number of calls in flight.
///
/// Confined to the executor. Not generic: generic `package` code is not specialised for the modules that use it.
package final class TimerQueue {
  fileprivate struct Entry {
    let time: Int64
    let order: UInt64
    let timer: QueuedTimer

    func precedes(_ other: Entry) -> Bool {
      self.time != other.time ? self.time < other.time : self.order < other.order
    }
  }

  private var entries: [Entry] = []
  private var nextOrder: UInt64 = 0

  package init() {}

  package var count: Int { self.entries.count }

  /// When the first timer is due; nil if there is none.
  package var nextTime: Int64? { self.entries.first?.time }

  /// - Parameter time: In nanoseconds, on the executor's clock.
  package func schedule(at time: Int64, _ work: @escaping @Sendable () -> Void) -> any CallTimer {
    let timer = QueuedTimer(work, in: self)
    let entry = Entry(time: time, order: self.nextOrder, timer: timer)
    self.nextOrder += 1
    self.entries.append(entry)
    self.siftUp(entry, from: self.entries.count - 1)
    return timer
  }

  /// Takes the first timer out, if it is due by `time`.
  ///
  /// - Returns: Its work.
  package func takeFirst(dueBy time: Int64) -> (@Sendable () -> Void)? {
    guard let first = self.entries.first, first.time <= time else { return nil }
    self.remove(at: 0)
    return first.timer.end()
  }

  /// Lets go of all timers, none of which fires.
  package func removeAll() {
    let entries = self.entries
    self.entries = []
    for entry in entries { _ = entry.timer.end() }
  }

  // MARK: The heap

  fileprivate func remove(at index: Int) {
    let last = self.entries.removeLast()
    guard index < self.entries.count else { return }
    if index > 0, last.precedes(self.entries[(index - 1) / 2]) {
      self.siftUp(last, from: index)
    } else {
      self.siftDown(last, from: index)
    }
  }

  private func place(_ entry: Entry, at index: Int) {
    self.entries[index] = entry
    entry.timer.place = index
  }

  /// Finds a place for an entry, at `start` or nearer to the first one.
  private func siftUp(_ entry: Entry, from start: Int) {
    var index = start
    while index > 0 {
      let parent = (index - 1) / 2
      guard entry.precedes(self.entries[parent]) else { break }
      self.place(self.entries[parent], at: index)
      index = parent
    }
    self.place(entry, at: index)
  }

  /// Finds a place for an entry, at `start` or further from the first one.
  private func siftDown(_ entry: Entry, from start: Int) {
    var index = start
    while true {
      var child = 2 * index + 1
      guard child < self.entries.count else { break }
      if child + 1 < self.entries.count, self.entries[child + 1].precedes(self.entries[child]) { child += 1 }
      guard self.entries[child].precedes(entry) else { break }
      self.place(self.entries[child], at: index)
      index = child
    }
    self.place(entry, at: index)
  }
}

/// `@unchecked Sendable`: touched on its executor alone, where `cancel` is called by contract.
private final class QueuedTimer: CallTimer, @unchecked Sendable {
  private var work: (@Sendable () -> Void)?
  /// Nil once the timer has left it.
  private var queue: TimerQueue?
  /// The queue's own: where it keeps the timer.
  @exclusivity(unchecked) fileprivate var place = 0

  init(_ work: @escaping @Sendable () -> Void, in queue: TimerQueue) {
    self.work = work
    self.queue = queue
  }

  /// The queue has let go of it.
  func end() -> (@Sendable () -> Void)? {
    self.queue = nil
    return self.work.take()
  }

  func cancel() {
    guard let queue = self.queue.take() else { return }
    queue.remove(at: self.place)
    self.work = nil
  }
}
