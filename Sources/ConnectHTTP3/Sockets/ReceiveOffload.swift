internal import NIOCore
internal import Synchronization

/// Whether the system puts consecutive datagrams together (generic receive offload), which Linux does from 5.0 on.
enum ReceiveOffload {
  private static let isOn = Atomic(System.supportsUDPReceiveOffload)

  static var isUsed: Bool { self.isOn.load(ordering: .relaxed) }

  /// For tests.
  static func set(_ isOn: Bool) { self.isOn.store(isOn, ordering: .relaxed) }
}
