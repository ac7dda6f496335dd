import Connect
import ConnectInterceptors
import ConnectTesting
import LoopbackServer
import Synchronization
import XCTest

/// A storage of the user's own that answers later, and from a thread of its own.
final class AsyncStorageTests: XCTestCase {
  func testCallsWaitForTheStorage() async throws {
    let storage = SlowStorage()
    let scene = CacheScene(storage: storage)
    var values: [String] = []
    for key in ["a", "b"] { values.append(try await scene.value(key)) }
    // Nobody waits for a response to be stored.
    await storage.waitUntilStored(2)
    for key in ["a", "b"] { values.append(try await scene.value(key)) }
    XCTAssertEqual(values, ["a 1", "b 2", "a 1", "b 2"])
  }

  /// A call that ends while its storage looks leads nobody.
  func testCallThatEndsMeanwhile() async throws {
    let storage = SlowStorage(isOpen: false)
    let scene = CacheScene(storage: storage)
    let calls = scene.start(3)
    for index in 0..<2 { calls.cancel(index) }
    scene.executor.runUntilIdle()
    XCTAssertEqual(calls.values, ["canceled", "canceled"])
    storage.open()
    let values = await calls.wait()
    XCTAssertEqual(values.last, "k 1")
    XCTAssertEqual(scene.requestCount, 1)
    await storage.waitUntilStored(1)
    let value = try await scene.value("k", .cacheOnly)
    XCTAssertEqual(value, "k 1")
  }

  /// A storage may forget what it likes.
  func testStorageThatKeepsNothing() async throws {
    let scene = CacheScene(storage: MemoryCacheStorage(maximumByteCount: 0))
    let values = [try await scene.value(), try await scene.value()]
    XCTAssertEqual(values, ["k 1", "k 2"])
  }
}

/// Answers from tasks of its own, once it is open.
final class SlowStorage: CacheStorage {
  private let base = MemoryCacheStorage()
  private let isOpen: Observed<Bool>
  private let storedCount = Observed(0)

  init(isOpen: Bool = true) { self.isOpen = Observed(isOpen) }

  func open() { self.isOpen.update { $0 = true } }

  func waitUntilStored(_ count: Int) async {
    _ = await self.storedCount.wait(within: .seconds(60)) { $0 >= count ? true : nil }
  }

  func entry(for key: CacheKey, _ completion: @escaping @Sendable (CacheEntry?) -> Void) {
    Task {
      _ = await self.isOpen.wait(within: .seconds(60)) { $0 ? true : nil }
      self.base.entry(for: key, completion)
    }
  }

  func store(_ entry: CacheEntry, for key: CacheKey) {
    self.base.store(entry, for: key)
    self.storedCount.update { $0 += 1 }
  }
  func remove(_ key: CacheKey) { self.base.remove(key) }
  func removeAll() { self.base.removeAll() }
}
