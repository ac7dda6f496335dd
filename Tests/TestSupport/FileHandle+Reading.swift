public import Foundation

extension FileHandle {
  /// Reads on a new thread: calls `receive` with the bytes as they come, and at the end with an empty `Data`.
  ///
  /// Use it instead of `readabilityHandler`. When such handlers are set and removed at the same time, libdispatch on Linux may
  /// crash (issue 949 of swift-corelibs-libdispatch).
  public func readOnThread(_ receive: @escaping @Sendable (Data) -> Void) {
    Thread.detachNewThread {
      while true {
        let data = self.availableData
        receive(data)
        if data.isEmpty { return }
      }
    }
  }
}
