internal import NIOCore
internal import Synchronization

/// Whether the system is given many datagrams in one write, which it cuts (generic segmentation offload).
enum SegmentationOffload {
  private static let isOn = Atomic(System.supportsUDPSegmentationOffload)

  static var isUsed: Bool { self.isOn.load(ordering: .relaxed) }

  /// Linux before 6.11 refuses to cut where the interface does not compute checksums, as on some tunnels. The error is
  /// EIO, for which NIO closes the channel. Then no connection of the process tries any more.
  ///
  /// - Parameter error: The error of a write of many datagrams.
  static func didFail(_ error: any Error) {
    if (error as? IOError)?.errnoCode == 5 { self.set(false) }
  }

  /// For tests.
  static func set(_ isOn: Bool) { self.isOn.store(isOn, ordering: .relaxed) }
}
