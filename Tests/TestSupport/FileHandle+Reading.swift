public import Foundation

extension FileHandle {
  /// Gives `receive` what comes, on a thread of its own, and at the end an empty `Data`.
  ///
  /// In the place of `readabilityHandler`: when such handlers come and go at the same time, libdispatch on Linux may crash
  /// (issue 949 of swift-corelibs-libdispatch).
  public func readToEnd(_ receive: @escaping @Sendable (Data) -> Void) {
    Thread.detachNewThread {
      while true {
        let data = self.availableData
        receive(data)
        if data.isEmpty { return }
      }
    }
  }
}
