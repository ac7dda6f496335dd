internal import Connect

/// The calls of a channel that wait for an endpoint. Confined to the channel's executor.
final class WaitingCalls: QueueOwner {
  weak var channel: OriginChannel?
  private let environment: ChannelEnvironment
  private var queue = WaitingQueue<WaitingStream>()
  /// Whether calls wait since the balancer's last update that have lost no connection yet.
  var hasNew = false

  init(in environment: ChannelEnvironment) {
    self.environment = environment
  }

  var count: Int { self.queue.count }

  var isEmpty: Bool { self.queue.isEmpty }

  /// Why a call may not wait beside `count` others; nil if it may. With those for which a connection will be opened.
  func refusal(beside count: Int) -> ConnectError? {
    let limits = self.environment.limits
    let expected = self.environment.version == .http1 ? limits.http1Connections : 100
    let (maximum, overflow) = limits.waitingCalls.addingReportingOverflow(expected)
    if count < maximum || overflow { return nil }
    return .tooManyWait(count, for: self.environment.origin.description, limit: limits.waitingCalls)
  }

  func append(_ stream: WaitingStream) {
    stream.queued(by: self, as: self.queue.append(stream))
  }

  func leave(_ handle: WaitingStream.Handle) {
    _ = self.queue.remove(handle)
    self.channel?.waitingDidChange()
  }

  /// Takes back calls that waited for a connection to an endpoint that is lost.
  func takeBack(_ streams: [WaitingStream]) {
    for stream in streams {
      stream.wasTakenBack = true
      stream.queuedCall = nil
      self.append(stream)
    }
    self.channel?.exitIdle()
    self.channel?.endpoints.needsUpdate()
  }

  /// Takes out each call that waits now, in order. It may come back.
  func forEach(_ body: (WaitingStream) -> Void) {
    for _ in 0..<self.queue.count {
      guard let stream = self.queue.popFirst() else { return }
      body(stream)
    }
  }

  func takeAll() -> [WaitingStream] { self.queue.takeAll() }
}
