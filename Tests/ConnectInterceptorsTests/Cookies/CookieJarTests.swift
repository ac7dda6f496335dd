import Connect
import ConnectTesting
import XCTest

@testable import ConnectInterceptors

/// What a jar keeps, and for how long.
final class CookieJarTests: XCTestCase {
  private let time = Observed(Duration.seconds(1_700_000_000))
  private lazy var jar = CookieJar(wallClock: WallClock { [time] in time.value })

  private func url(_ host: String, scheme: Origin.Scheme = .https, path: String = "/") -> RequestURL {
    RequestURL(origin: Origin(scheme: scheme, host: host, port: 443), path: path)
  }

  func testExpiry() {
    let here = self.url("a.test")
    self.jar.receive("session=1", from: here)
    self.jar.receive("age=1; Max-Age=10", from: here)
    self.jar.receive("date=1; Expires=Tue, 14 Nov 2023 22:13:40 GMT", from: here)
    self.jar.receive("past=1; Expires=Tue, 14 Nov 2023 22:13:20 GMT", from: here)
    XCTAssertEqual(self.jar.cookies(for: here).map(\.name), ["session", "age", "date"])
    self.time.update { $0 += .seconds(9) }
    XCTAssertEqual(self.jar.cookies(for: here).map(\.name), ["session", "age", "date"])
    self.time.update { $0 += .seconds(1) }
    XCTAssertEqual(self.jar.cookies(for: here).map(\.name), ["session", "date"])
    XCTAssertEqual(self.jar.cookies.map(\.name), ["session", "date"])
    self.jar.receive("date=2; Max-Age=-5", from: here)
    XCTAssertEqual(self.jar.cookies(for: here).map(\.name), ["session"])
    self.time.update { $0 += .seconds(1_000_000_000) }
    XCTAssertEqual(self.jar.cookies(for: here).map(\.name), ["session"])
  }

  func testFiftyForADomain() {
    let here = self.url("a.test")
    self.jar.receive("short=1; Max-Age=5", from: here)
    for number in 1...49 { self.jar.receive("c\(number)=1; Path=/\(number)", from: here) }
    XCTAssertEqual(self.jar.cookies.count, 50)
    // Used later than all others.
    _ = self.jar.cookies(for: self.url("a.test", path: "/1"))
    self.time.update { $0 += .seconds(5) }
    // In place of the expired one.
    self.jar.receive("c50=1", from: here)
    XCTAssertEqual(self.jar.cookies.count, 50)
    // In place of those that were not used.
    self.jar.receive("c51=1", from: here)
    self.jar.receive("c52=1", from: here)
    let names = Set(self.jar.cookies.map(\.name))
    XCTAssertEqual(names.count, 50)
    XCTAssertTrue(names.isSuperset(of: ["c1", "c4", "c50", "c51", "c52"]))
    XCTAssertTrue(names.isDisjoint(with: ["c2", "c3", "short"]))
    for number in 0..<10_000 { self.jar.receive("x\(number)=1", from: here) }
    XCTAssertEqual(self.jar.cookies.count, 50)
    // Other hosts are not concerned, nor is the domain above.
    self.jar.receive("d=1; Domain=b.test", from: self.url("x.b.test"))
    for number in 0..<100 { self.jar.receive("x\(number)=1", from: self.url("x.b.test")) }
    XCTAssertEqual(self.jar.cookies(for: self.url("x.b.test")).count, 51)
  }

  func testThreeThousandInAll() {
    for number in 0..<3000 {
      let lifetime = number < 10 ? "; Max-Age=5" : ""
      self.jar.receive("c=\(number)\(lifetime)", from: self.url("h\(number).test"))
    }
    XCTAssertEqual(self.jar.cookies.count, 3000)
    self.time.update { $0 += .seconds(5) }
    self.jar.receive("c=1", from: self.url("new1.test"))
    XCTAssertEqual(self.jar.cookies.count, 2991)
    for number in 2...10 { self.jar.receive("c=1", from: self.url("new\(number).test")) }
    XCTAssertEqual(self.jar.cookies.count, 3000)
    XCTAssertEqual(self.jar.cookies(for: self.url("h10.test")).count, 1)
    // The least recently used one is number 11 now.
    self.jar.receive("c=1", from: self.url("last.test"))
    XCTAssertEqual(self.jar.cookies.count, 3000)
    XCTAssertEqual(self.jar.cookies(for: self.url("h10.test")).count, 1)
    XCTAssertEqual(self.jar.cookies(for: self.url("h11.test")).count, 0)
    XCTAssertEqual(self.jar.cookies(for: self.url("last.test")).count, 1)
  }

  func testHugeCookieIsIgnored() {
    let here = self.url("a.test")
    self.jar.receive("a=1", from: here)
    self.jar.receive("a=" + String(repeating: "x", count: 1 << 20), from: here)
    XCTAssertEqual(self.jar.cookies.map(\.value), ["1"])
  }

  func testUsers() {
    let here = self.url("a.test")
    let former = self.jar.user
    self.jar.receive(["a=1"], from: here, of: former)
    XCTAssertEqual(self.jar.cookies(for: here, of: former).count, 1)
    self.jar.removeAll()
    self.jar.receive(["a=late"], from: here, of: former)
    XCTAssertEqual(self.jar.cookies, [])
    self.jar.receive(["a=2"], from: here, of: self.jar.user)
    XCTAssertEqual(self.jar.cookies(for: here, of: former), [])
    XCTAssertEqual(self.jar.cookies(for: here).map(\.value), ["2"])
  }

  func testNoDescriptionHasValues() {
    self.jar.receive("a=s3cret", from: self.url("a.test"))
    var dumped = ""
    dump(self.jar, to: &dumped)
    dump(self.jar.cookies, to: &dumped)
    for text in ["\(self.jar)", "\(self.jar.cookies)", String(reflecting: self.jar), dumped] {
      XCTAssertFalse(text.contains("s3cret"), text)
    }
    XCTAssertEqual("\(self.jar.cookies[0])", "Cookie(a of a.test/)")
  }

  /// Whatever servers and callers do at the same time, and whatever they send.
  func testRandomUse() async {
    let jar = self.jar
    await withTaskGroup(of: Void.self) { group in
      for seed in 0..<8 {
        group.addTask {
          var random = SystemRandomNumberGenerator()
          let pieces = [
            "a", "b=", "=", ";", " ", "Path=/", "Domain=", "x.test", "Max-Age=", "0", "9", "Secure", "\"",
            "é", "/", ".",
          ]
          for round in 0..<5000 {
            let text = (0..<Int.random(in: 0...12, using: &random)).map { _ in
              pieces.randomElement(using: &random)!
            }.joined()
            let url = RequestURL(
              origin: Origin(scheme: .https, host: "\(seed).x.test", port: 1),
              path: "/\(round % 7)/x"
            )
            jar.receive(text, from: url)
            let now = jar.cookies(for: url)
            XCTAssertLessThanOrEqual(now.count, 150)
            if round % 1000 == 999 { jar.removeAll() }
          }
        }
      }
    }
    XCTAssertLessThanOrEqual(jar.cookies.count, 3000)
  }
}
