internal import Logging

/// Warns of an interceptor that holds a call up. Confined to the call's executor.
final class HoldWatch {
  private let patience: Duration
  private var timer: (any CallTimer)?
  /// How often an interceptor began to hold the call up.
  private var count = 0

  private init(patience: Duration) {
    self.patience = patience
  }

  /// A hook has returned without proceeding, or an async interceptor has received a part.
  static func hookWaits(in call: Call) {
    guard let patience = call.plan.environment.settings.holdingPatience else { return }
    let watch = call.timers.holdWatch ?? HoldWatch(patience: patience)
    call.timers.holdWatch = watch
    watch.count += 1
    if watch.timer == nil { watch.watch(call) }
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
