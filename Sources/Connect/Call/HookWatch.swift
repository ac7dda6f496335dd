internal import Logging

/// Measures how long hooks occupy the call's executor, and warns of slow hooks.
struct HookWatch: Sendable {
  let executor: any CallExecutor
  let limit: Duration
  let logger: Logger
  let method: MethodInfo

  /// One run of a hook.
  struct Measurement {
    fileprivate let watch: HookWatch
    fileprivate let interceptor: any Interceptor.Type
    fileprivate let start: Duration

    func end() {
      let duration = self.watch.executor.now - self.start
      guard duration >= self.watch.limit else { return }
      self.watch.logger.warning(
        "a hook has blocked the executor, which all calls on it wait for",
        metadata: [
          "rpc.method": "\(self.watch.method.path)",
          "interceptor": "\(self.interceptor)",
          "duration": "\(duration)",
        ]
      )
    }
  }

  func begin(_ interceptor: any Interceptor.Type) -> Measurement {
    Measurement(watch: self, interceptor: interceptor, start: self.executor.now)
  }
}
