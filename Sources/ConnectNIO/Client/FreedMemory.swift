internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#endif

/// Keeps glibc from giving memory back to the system that the next message takes again: see
/// ``NIOHTTPClient/Configuration/keepsFreedMemory``.
///
/// By default, glibc gives memory back whenever more than 128 KiB at the end of the heap are free, and maps every
/// larger block separately. Most of a large message's cost is then page faults. Once a program has freed one large
/// block, glibc expects more of them, and keeps twice as much (mallopt(3), `M_MMAP_THRESHOLD`). This type frees such a
/// block. The block is never touched, so it costs no memory. Without effect where `MALLOC_TRIM_THRESHOLD_` or
/// `MALLOC_MMAP_THRESHOLD_` is set, or with another allocator.
enum FreedMemory {
  /// Twice this may stay with the process after it was used, for each thread that allocates.
  private static let blockSize = 8 << 20

  private static let kept = Mutex(false)

  /// Whether ``keep()`` was called and found glibc.
  static var isKept: Bool { self.kept.withLock { $0 } }

  /// Makes glibc keep freed memory, once in a process; there is no way back.
  static func keep() {
    #if canImport(Glibc)
    self.kept.withLock { isKept in
      guard !isKept else { return }
      var block: UnsafeMutableRawPointer?
      // Not malloc, which the compiler could leave out together with free.
      guard posix_memalign(&block, 64, Self.blockSize) == 0 else { return }
      free(block)
      isKept = true
    }
    #endif
  }
}
