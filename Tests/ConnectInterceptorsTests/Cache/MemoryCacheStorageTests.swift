import Connect
import ConnectInterceptors
import ConnectTesting
import NIOCore
import XCTest

final class MemoryCacheStorageTests: XCTestCase {
  private let cache = ResponseCache()
  private let driver = InterceptorDriver { _ in CacheReadInterceptor(ResponseCache()) }

  private func key(_ number: Int) -> CacheKey {
    self.cache.key(for: self.driver.makeRequest(message: ByteBuffer(integer: number)))
  }

  /// An entry whose message has so many bytes.
  private func entry(_ byteCount: Int) async -> CacheEntry? {
    let response = HTTPResponse(message: ByteBuffer(repeating: 1, count: byteCount))
    let request = self.driver.makeRequest(message: ByteBuffer())
    self.cache.store(response, for: request)
    return await withCheckedContinuation { continuation in
      self.cache.entry(for: request) { continuation.resume(returning: $0) }
    }
  }

  private func contains(_ number: Int, _ storage: MemoryCacheStorage) async -> Bool {
    await withCheckedContinuation { continuation in
      storage.entry(for: self.key(number)) { continuation.resume(returning: $0 != nil) }
    }
  }

  func testBytesStayBoundedUnderAMillionKeys() async throws {
    let storage = MemoryCacheStorage(maximumByteCount: 1_000_000)
    let stored = await self.entry(1000)
    let entry = try XCTUnwrap(stored)
    var request = self.driver.makeRequest(message: ByteBuffer())
    for number in 0..<1_000_000 {
      request.message.clear()
      request.message.writeInteger(number)
      storage.store(entry, for: self.cache.key(for: request))
      if number.isMultiple(of: 10_000) { XCTAssertLessThanOrEqual(storage.byteCount, 1_000_000) }
    }
    XCTAssertLessThanOrEqual(storage.byteCount, 1_000_000)
    XCTAssertGreaterThan(storage.byteCount, 900_000)
    XCTAssertLessThan(storage.count, 1000)
    let (last, first) = await (self.contains(999_999, storage), self.contains(0, storage))
    XCTAssertTrue(last)
    XCTAssertFalse(first)
  }

  func testTheLeastRecentlyUsedGoesFirst() async throws {
    let stored = await self.entry(1000)
    let entry = try XCTUnwrap(stored)
    let size = entry.byteCount + self.key(1).byteCount
    let storage = MemoryCacheStorage(maximumByteCount: 3 * size)
    for number in 1...3 { storage.store(entry, for: self.key(number)) }
    _ = await self.contains(1, storage)
    storage.store(entry, for: self.key(3))
    storage.store(entry, for: self.key(4))
    var found: [Int] = []
    for number in 1...4 where await self.contains(number, storage) { found.append(number) }
    XCTAssertEqual(found, [1, 3, 4])
    XCTAssertEqual(storage.byteCount, 3 * size)

    storage.remove(self.key(3))
    XCTAssertEqual(storage.byteCount, 2 * size)
    storage.removeAll()
    XCTAssertEqual(storage.byteCount, 0)
    XCTAssertEqual(storage.count, 0)
  }

  func testEntryThatIsTooLargeIsNotKept() async throws {
    let (small, large) = await (self.entry(10), self.entry(100_000))
    let storage = MemoryCacheStorage(maximumByteCount: 10_000)
    storage.store(try XCTUnwrap(small), for: self.key(1))
    storage.store(try XCTUnwrap(small), for: self.key(2))
    storage.store(try XCTUnwrap(large), for: self.key(1))
    let (first, second) = await (self.contains(1, storage), self.contains(2, storage))
    XCTAssertFalse(first, "it was replaced")
    XCTAssertTrue(second)
  }

  /// What is kept must not keep the buffer of a whole connection.
  func testSlicesAreCopied() async throws {
    let buffer = ByteBuffer(repeating: 1, count: 1_000_000)
    let response = HTTPResponse(message: try XCTUnwrap(buffer.getSlice(at: 10, length: 100)))
    let request = self.driver.makeRequest(message: ByteBuffer())
    self.cache.store(response, for: request)
    let entry = await withCheckedContinuation { continuation in
      self.cache.entry(for: request) { continuation.resume(returning: $0) }
    }
    let kept = try XCTUnwrap(entry).response.message
    XCTAssertEqual(kept.readableBytes, 100)
    XCTAssertLessThan(kept.storageCapacity, 1000)
  }

  func testManyThreads() async throws {
    let storage = MemoryCacheStorage(maximumByteCount: 50_000)
    let stored = await self.entry(100)
    let entry = try XCTUnwrap(stored)
    let keys = (0..<200).map { self.key($0) }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          for _ in 0..<2000 {
            let key = keys[Int.random(in: 0..<keys.count)]
            switch Int.random(in: 0..<10) {
            case 0: storage.remove(key)
            case 1...4: storage.store(entry, for: key)
            default: storage.entry(for: key) { _ in }
            }
          }
        }
      }
    }
    XCTAssertLessThanOrEqual(storage.byteCount, 50_000)
    for key in keys { storage.remove(key) }
    XCTAssertEqual(storage.byteCount, 0)
    XCTAssertEqual(storage.count, 0)
  }
}
