/// How much of an exchange may wait in a ``WireHTTPClient``.
public struct WireLimits: Sendable, Hashable {
  /// How many bytes of one direction each interceptor may have received that it has not passed on, before its hooks get no
  /// more and the peer, or the call, is held back. A chunk that exceeds it is received whole, alone. At least 1.
  public var waitingBytes: Int {
    didSet { self.waitingBytes = max(self.waitingBytes, 1) }
  }
  /// The same in chunks. Chunks beyond it that have not been received are joined. At least 1.
  public var waitingChunks: Int {
    didSet { self.waitingChunks = max(self.waitingChunks, 1) }
  }
  /// How many bytes more than it has received an interceptor may pass on with one `proceed`. The exchange fails with
  /// `resource_exhausted` if it passes on more. Not negative.
  public var addedBytes: Int {
    didSet { self.addedBytes = max(self.addedBytes, 0) }
  }

  /// Limits as given; what is left out is as in ``defaults``.
  public init(waitingBytes: Int = 64 << 10, waitingChunks: Int = 16, addedBytes: Int = 4 << 20) {
    self.waitingBytes = max(waitingBytes, 1)
    self.waitingChunks = max(waitingChunks, 1)
    self.addedBytes = max(addedBytes, 0)
  }

  /// 64 KiB and 16 chunks that wait, 4 MiB more than received.
  public static var defaults: WireLimits { WireLimits() }
}
