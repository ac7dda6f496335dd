import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

final class PushResolverTests: XCTestCase {
  /// Answers from several threads may meet: whoever has heard an older one behind a newer one hears that again.
  func testTheLastAnswerThatIsHeardIsTheNewest() {
    let resolver = PushResolver()
    let heard = Mutex<[String: [Int]]>([:])
    let origin = Origin(scheme: .http, host: "a.test", port: 80)
    let executor = VirtualExecutor()
    var watches: [any ResolverWatch] = []
    for name in ["first", "second"] {
      watches.append(
        resolver.watch(origin, on: executor) { answer in
          let count = (try? answer.get().endpoints.count) ?? -1
          heard.withLock { $0[name, default: []].append(count) }
          // As another thread would, between the two.
          if name == "first", count == 1 {
            resolver.update((1...2).compactMap { Endpoint("10.0.0.\($0):80") })
          }
        }
      )
    }
    resolver.update([Endpoint("10.0.0.1:80")].compactMap { $0 })
    XCTAssertEqual(heard.withLock { $0["first"]?.last }, 2)
    XCTAssertEqual(heard.withLock { $0["second"]?.last }, 2)
    XCTAssertEqual(watches.count, 2)
  }

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
