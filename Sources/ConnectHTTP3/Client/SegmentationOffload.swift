internal import NIOCore
internal import Synchronization

/// Whether the system is given many datagrams at once, which it cuts (generic segmentation offload).
enum SegmentationOffload {
  private static let isOn = Atomic(System.supportsUDPSegmentationOffload)

  static var isUsed: Bool { self.isOn.load(ordering: .relaxed) }

  /// Linux before 6.11 refuses to cut where the interface does not compute checksums, as on some tunnels, and NIO closes the channel
  /// for that: EIO. Then no connection of the process tries any more.
  ///
  /// - Parameter error: What has become of datagrams that were given to the system at once.
  static func didFail(_ error: any Error) {
    if (error as? IOError)?.errnoCode == 5 { self.set(false) }
  }

  /// For tests.
  static func set(_ isOn: Bool) { self.isOn.store(isOn, ordering: .relaxed) }
}
