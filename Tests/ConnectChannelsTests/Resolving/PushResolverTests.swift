import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

final class PushResolverTests: XCTestCase {
  private let executor = VirtualExecutor()

  private func endpoints(_ addresses: String...) -> [Endpoint] {
    addresses.map { Endpoint($0)! }
  }

  func testUpdatesReachAllWatches() {
    let resolver = PushResolver()
    let first = WatchRecord(resolver, on: self.executor)
    XCTAssertEqual(first.texts, [], "nothing is known yet")
    resolver.update(self.endpoints("10.0.0.1:1"), serviceConfig: "{}")
    let second = WatchRecord(resolver, on: self.executor)
    resolver.update(self.endpoints("10.0.0.1:1", "10.0.0.2:1"))
    XCTAssertEqual(first.texts, ["10.0.0.1:1 {}", "10.0.0.1:1 10.0.0.2:1"])
    XCTAssertEqual(second.texts, first.texts)
  }

  func testAFailureDoesNotReplaceWhatIsKnown() {
    let resolver = PushResolver()
    let first = WatchRecord(resolver, on: self.executor)
    resolver.fail(ConnectError(code: .unavailable, message: "a"))
    let second = WatchRecord(resolver, on: self.executor)
    resolver.update(self.endpoints("10.0.0.1:1"))
    resolver.fail(ConnectError(code: .unavailable, message: "b"))
    let third = WatchRecord(resolver, on: self.executor)
    XCTAssertEqual(first.texts, ["unavailable: a", "10.0.0.1:1", "unavailable: b"])
    XCTAssertEqual(second.texts, first.texts)
    XCTAssertEqual(third.texts, ["10.0.0.1:1"])
  }

  func testCancelledWatchesGetNothing() {
    let resolver = PushResolver()
    let (first, second) = (
      WatchRecord(resolver, on: self.executor), WatchRecord(resolver, on: self.executor)
    )
    first.cancel()
    resolver.update(self.endpoints("10.0.0.1:1"))
    XCTAssertEqual(first.texts, [])
    XCTAssertEqual(second.texts, ["10.0.0.1:1"])
  }

  func testRequests() {
    let requests = Mutex(0)
    let resolver = PushResolver { requests.withLock { $0 += 1 } }
    let watch = WatchRecord(resolver, on: self.executor)
    watch.resolveAgain()
    watch.resolveAgain()
    XCTAssertEqual(requests.withLock { $0 }, 2)
  }

  func testStaticResolver() {
    let resolver = StaticResolver(self.endpoints("10.0.0.1:1", "10.0.0.2:1"), serviceConfig: "{}")
    let watch = WatchRecord(resolver, on: self.executor)
    watch.resolveAgain()
    self.executor.advance(by: .seconds(3_600))
    watch.cancel()
    XCTAssertEqual(watch.texts, ["10.0.0.1:1 10.0.0.2:1 {}"])
  }
}
