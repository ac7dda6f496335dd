internal import Logging

/// Warns of an interceptor that holds a call up. Confined to the call's executor.
final class HoldWatch {
  private let patience: Duration
  private var timer: (any CallTimer)?
  /// How often an interceptor began to hold the call up.
  private var count = 0

  init(patience: Duration) {
    self.patience = patience
  }

  func hookWaits(_ call: Call) {
    self.count += 1
    if self.timer == nil { self.watch(call) }
  }

  func cancel() {
    self.timer.take()?.cancel()
  }

  private func watch(_ call: Call) {
    let count = self.count
    let here = Confined(self, to: call.executor)
    self.timer = call.executor.schedule(after: self.patience) { [weak call] in
      if let call, !call.isOver { here.value.timeIsUp(count, call) }
    }
  }

  private func timeIsUp(_ count: Int, _ call: Call) {
    self.timer = nil
    guard let holder = HookHolders(in: call.pipeline).blocking else { return }
    guard count == self.count else {
      self.watch(call)
      return
    }
    call.plan.environment.logger.warning(
      "an interceptor holds a call up",
      metadata: [
        "rpc.method": "\(call.plan.info.path)",
        "interceptor": "\(holder.interceptor)",
        "since": "more than \(self.patience)",
      ]
    )
  }
}
