#if canImport(Glibc)
internal import Glibc
internal import XCTest

@testable internal import ConnectNIO

final class FreedMemoryTests: XCTestCase {
  private var pageFaults: Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_minflt
  }

  /// The one test that asks for it: the process has no way back.
  ///
  /// With it, a block of many pages that is taken, used and freed again and again costs its pages once.
  func testMemoryIsKeptOnlyIfAskedFor() async throws {
    XCTAssertFalse(NIOHTTPClient.Configuration.defaults.keepsFreedMemory)
    XCTAssertFalse(NIOHTTPClient.Configuration().keepsFreedMemory)
    await NIOHTTPClient().shutdown()
    XCTAssertFalse(FreedMemory.isKept)
    for _ in 0..<2 {
      await NIOHTTPClient(configuration: .init(keepsFreedMemory: true)).shutdown()
      XCTAssertTrue(FreedMemory.isKept)
    }
    try self.checkPageFaults()
  }

  private func checkPageFaults() throws {
    let (size, rounds) = (2 << 20, 50)
    let before = self.pageFaults
    for _ in 0..<rounds {
      var block: UnsafeMutableRawPointer?
      XCTAssertEqual(posix_memalign(&block, 64, size), 0)
      memset(try XCTUnwrap(block), 1, size)
      free(block)
    }
    let pages = size / Int(getpagesize())
    XCTAssertLessThan(self.pageFaults - before, pages * rounds / 4)
  }
}
#endif
