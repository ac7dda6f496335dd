import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels
@testable import ConnectNIO

final class SystemResolverTests: XCTestCase {
  private let executor = VirtualExecutor()
  private let origin = Origin(scheme: .https, host: "api.test", port: 8443)

  func testLocalhost() async throws {
    let origin = Origin(scheme: .http, host: "localhost", port: 8080)
    let watch = TestWatch(SystemResolver(), origin, on: self.executor)
    let update = try await watch.update()
    XCTAssertTrue(
      update.endpoints.contains(Endpoint("127.0.0.1:8080")!)
        || update.endpoints.contains(Endpoint("[::1]:8080")!),
      "\(update)"
    )
    XCTAssertEqual(update.endpoints.count, Set(update.endpoints).count)
    XCTAssertTrue(update.endpoints.allSatisfy { $0.addresses.count == 1 })
    XCTAssertNil(update.timeToLive)
  }

  func testNameThatTheSystemDoesNotKnow() async throws {
    // Refused by the C library itself, with or without a network.
    let origin = Origin(scheme: .https, host: "a..b", port: 1)
    let error = try await TestWatch(SystemResolver(), origin, on: self.executor).error()
    XCTAssertEqual(error.code, .unavailable)
    XCTAssertNotNil(error.resolution?.errorNumber)
    let message = error.message ?? ""
    let text = error.resolution?.message ?? ""
    XCTAssertEqual(message, "cannot resolve the name of https://a..b:1: \(text)")
    XCTAssertFalse(text.isEmpty)
  }

  func testHostsThatAreAddresses() async throws {
    let resolver = SystemResolver(seed: 1) { _ in
      XCTFail("nothing has to be resolved")
      return .success([])
    }
    for (origin, address) in [
      (Origin(scheme: .http, host: "192.0.2.1", port: 80), "192.0.2.1:80"),
      (Origin(scheme: .https, host: "2001:db8::1", port: 443), "[2001:db8::1]:443"),
      (Origin(scheme: .unix, host: "/run/a.sock", port: 0), "unix:/run/a.sock"),
      (Origin(scheme: .unixAbstract, host: "a", port: 0), "unix-abstract:a"),
      (Origin(scheme: .vsock, host: "3", port: 50_051), "vsock:3:50051"),
    ] {
      let watch = TestWatch(resolver, origin, on: self.executor)
      self.executor.runUntilIdle()
      XCTAssertEqual(
        try watch.reports.map { try $0.get() },
        [ResolverUpdate(endpoints: [Endpoint(address)!])]
      )
    }
  }

  func testEachAddressIsAnEndpointInTheSystemsOrder() async throws {
    let resolver = SystemResolver(seed: 1) { host in
      .success(host == "api.test" ? ["::2", "10.0.0.2", "10.0.0.1"].compactMap { IPAddress($0) } : [])
    }
    let update = try await TestWatch(resolver, self.origin, on: self.executor).update()
    XCTAssertEqual(update.addresses, ["[::2]:8443", "10.0.0.2:8443", "10.0.0.1:8443"])
  }

  func testErrors() async throws {
    let failures: [ResolutionError] = [
      .init(.noSuchName, message: "Name or service not known", errorNumber: -2),
      .init(.noRecords, message: "No address associated with hostname", errorNumber: -5),
    ]
    let looks = Mutex(0)
    let resolver = SystemResolver(seed: 1) { _ in
      let number = looks.withLock { looks in
        looks += 1
        return looks - 1
      }
      return failures.indices.contains(number) ? .failure(failures[number]) : .success([.loopbackIPv4])
    }
    let watch = TestWatch(resolver, self.origin, on: self.executor)
    let error = try await watch.error()
    XCTAssertEqual(
      error.message,
      "cannot resolve the name of https://api.test:8443: Name or service not known"
    )
    XCTAssertEqual(error.resolution, failures[0])
    self.executor.advance(by: .milliseconds(1_200))
    let empty = try await watch.update(after: 1)
    XCTAssertEqual(empty, ResolverUpdate(endpoints: []))
    self.executor.advance(by: .milliseconds(1_920))
    let update = try await watch.update(after: 2)
    XCTAssertEqual(update.addresses, ["127.0.0.1:8443"])
    XCTAssertEqual(self.executor.scheduled, [], "the system knows no time to live")
  }

  /// A name that is wrong is so the next time.
  func testErrorsThatNoRepetitionChanges() throws {
    let cases: [(ResolutionError.Reason, isFinal: Bool)] = [
      (.invalidName, true), (.noSuchName, true), (.tooManyAliases, false), (.serverFailure, false),
      (.unreachable, false),
    ]
    for (reason, isFinal) in cases {
      let error = ResolutionError(reason, message: "no")
      guard case .failure(let reported) = error.report(for: self.origin) else { return XCTFail("\(reason)") }
      XCTAssertEqual(reported.isFinal, isFinal, "\(reason)")
      // Nor does it become another one if it is the proxy's.
      let proxy = Proxy.socks5(host: "proxy.test", port: 1080, credentials: nil)
      let ofProxy = ProxyRoute(proxy: proxy, origin: self.origin).notFound(reported)
      XCTAssertEqual(ofProxy.isFinal, isFinal, "\(reason)")
    }
  }

  func testALookThatHangsIsTheOnlyOne() async throws {
    let looks = Mutex(0)
    let release = DispatchSemaphore(value: 0)
    let resolver = SystemResolver(minimumInterval: .zero, seed: 1) { _ in
      looks.withLock { $0 += 1 }
      release.wait()
      return .success([.loopbackIPv4])
    }
    let watch = TestWatch(resolver, self.origin, on: self.executor)
    try await eventually("the look has begun") { looks.withLock { $0 } == 1 }
    for _ in 0..<20 {
      watch.resolveAgain()
      self.executor.advance(by: .seconds(60))
    }
    XCTAssertEqual(looks.withLock { $0 }, 1)
    release.signal()
    _ = try await watch.update()
    // One more, for all that was asked for meanwhile.
    try await eventually("the next look") { looks.withLock { $0 } == 2 }
    watch.cancel()
    release.signal()
    self.executor.advance(by: .seconds(600))
    XCTAssertEqual(watch.reports.count, 1)
    XCTAssertEqual(looks.withLock { $0 }, 2)
  }

  func testLookUpOfTheSystem() throws {
    let localhost = try HostAddresses.lookUp("localhost")
    XCTAssertEqual(localhost.count, Set(localhost).count)
    XCTAssertFalse(localhost.isEmpty)
    XCTAssertEqual(try HostAddresses.lookUp("192.0.2.1"), [IPAddress("192.0.2.1")!])
    XCTAssertEqual(try HostAddresses.lookUp("2001:db8::1"), [IPAddress("2001:db8::1")!])
    XCTAssertThrowsError(try HostAddresses.lookUp("local\0host")) { error in
      XCTAssertEqual((error as? ResolutionError)?.reason, .noSuchName)
    }
  }
}
