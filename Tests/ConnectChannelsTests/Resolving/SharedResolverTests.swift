import Connect
import ConnectTesting
import Synchronization
import XCTest

@testable import ConnectChannels

/// Several channels that look for one name.
final class SharedResolverTests: XCTestCase {
  /// Notes what is asked of it, and answers when the test says so.
  private final class Source: NameResolver {
    struct State {
      var reports: [@Sendable (Result<ResolverUpdate, ConnectError>) -> Void] = []
      var notes: [String] = []
    }

    let state = Mutex(State())
    /// What the first look finds at once.
    let first: ResolverUpdate?

    init(first: ResolverUpdate? = nil) {
      self.first = first
    }

    var notes: [String] { self.state.withLock { $0.notes } }

    func note(_ what: String, on executor: any CallExecutor) {
      self.state.withLock { $0.notes.append(executor.isCurrent ? what : "\(what) elsewhere") }
    }

    func report(_ answer: Result<ResolverUpdate, ConnectError>, by watch: Int) {
      self.state.withLock { $0.reports[watch] }(answer)
    }

    func watch(
      _ origin: Origin,
      on executor: any CallExecutor,
      _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
    ) -> any ResolverWatch {
      self.note("watch", on: executor)
      self.state.withLock { $0.reports.append(report) }
      if let first = self.first { report(.success(first)) }
      return Watch(self, executor)
    }

    private final class Watch: ResolverWatch {
      let source: Source
      let executor: any CallExecutor

      init(_ source: Source, _ executor: any CallExecutor) {
        self.source = source
        self.executor = executor
      }

      func resolveAgain() { self.source.note("again", on: self.executor) }
      func keepClusters(_ names: Set<String>) {
        self.source.note("keep \(names.sorted())", on: self.executor)
      }
      func cancel() { self.source.note("cancel", on: self.executor) }
    }
  }

  private let origin = Origin(scheme: .http, host: "fleet.test", port: 80)
  private let executors = [VirtualExecutor(), VirtualExecutor()]

  private func runUntilIdle() {
    for _ in 0..<3 { for executor in self.executors { executor.runUntilIdle() } }
  }

  /// A watch of the channel on executor `index`, and what it is told: the number of endpoints, or an error's message.
  private func watch(_ resolver: SharedResolver, _ index: Int) -> (any ResolverWatch, () -> [String]) {
    let told = Recorder()
    let executor = self.executors[index]
    let watch = executor.sync {
      resolver.watch(self.origin, on: executor) { answer in
        switch answer {
        case .success(let update): told.add("\(update.endpoints.count)")
        case .failure(let error): told.add(error.message ?? "")
        }
      }
    }
    return (watch, { told.all })
  }

  private final class Recorder: Sendable {
    private let values = Mutex<[String]>([])
    var all: [String] { self.values.withLock { $0 } }
    func add(_ value: String) { self.values.withLock { $0.append(value) } }
  }

  private func update(_ count: Int) -> ResolverUpdate {
    ResolverUpdate(endpoints: (1...count).compactMap { Endpoint("10.0.0.\($0):80") })
  }

  func testOneLookForAll() {
    let source = Source()
    let resolver = SharedResolver(source)
    let (first, firstTold) = self.watch(resolver, 0)
    source.report(.success(self.update(2)), by: 0)
    let (second, secondTold) = self.watch(resolver, 1)
    XCTAssertEqual(firstTold(), ["2"])
    // Those that come later hear what is known.
    XCTAssertEqual(secondTold(), ["2"])
    source.report(.success(self.update(3)), by: 0)
    source.report(.failure(ConnectError(code: .unavailable, message: "down")), by: 0)
    XCTAssertEqual(firstTold(), ["2", "3", "down"])
    XCTAssertEqual(secondTold(), ["2", "3", "down"])
    let (third, thirdTold) = self.watch(resolver, 1)
    XCTAssertEqual(thirdTold(), ["3"])
    // What the second asks reaches the resolver where it lives.
    self.executors[1].sync { second.resolveAgain() }
    self.runUntilIdle()
    XCTAssertEqual(source.notes, ["watch", "again"])
    self.executors[0].sync { first.cancel() }
    self.executors[1].sync { second.cancel() }
    source.report(.success(self.update(4)), by: 0)
    XCTAssertEqual(firstTold().count, 3)
    XCTAssertEqual(thirdTold(), ["3", "4"])
    self.executors[1].sync { third.cancel() }
    self.runUntilIdle()
    XCTAssertEqual(source.notes, ["watch", "again", "cancel"])
  }

  /// Each channel says what it holds, where it lives. The resolver hears of all.
  func testClustersThatChannelsHold() {
    let source = Source()
    let resolver = SharedResolver(source)
    let (first, _) = self.watch(resolver, 0)
    let (second, _) = self.watch(resolver, 1)
    self.executors[0].sync { first.keepClusters(["a"]) }
    self.executors[1].sync { second.keepClusters(["a", "b"]) }
    self.runUntilIdle()
    self.executors[0].sync { first.keepClusters([]) }
    self.executors[1].sync { second.cancel() }
    self.runUntilIdle()
    let kept = ["[\"a\"]", "[\"a\", \"b\"]", "[\"a\", \"b\"]", "[]"].map { "keep \($0)" }
    XCTAssertEqual(source.notes, ["watch"] + kept)
    self.executors[1].sync { second.keepClusters(["c"]) }
    self.runUntilIdle()
    XCTAssertEqual(source.notes.last, "keep []", "it has ended")
  }

  /// When all have gone, the next one begins another look. Late answers of the first look are not heard.
  func testTheNextWatchBeginsAnew() {
    let source = Source()
    let resolver = SharedResolver(source)
    let (first, firstTold) = self.watch(resolver, 0)
    source.report(.success(self.update(1)), by: 0)
    self.executors[0].sync {
      first.cancel()
      first.cancel()
      first.resolveAgain()
    }
    self.runUntilIdle()
    let (second, secondTold) = self.watch(resolver, 1)
    XCTAssertEqual(secondTold(), [])
    source.report(.success(self.update(2)), by: 0)
    source.report(.success(self.update(3)), by: 1)
    XCTAssertEqual(firstTold(), ["1"])
    XCTAssertEqual(secondTold(), ["3"])
    self.executors[1].sync { second.cancel() }
    self.runUntilIdle()
    XCTAssertEqual(source.notes, ["watch", "cancel", "watch", "cancel"])
  }

  func testAResolverThatAnswersAtOnce() {
    let resolver = SharedResolver(Source(first: self.update(2)))
    let (_, firstTold) = self.watch(resolver, 0)
    let (_, secondTold) = self.watch(resolver, 1)
    XCTAssertEqual(firstTold(), ["2"])
    XCTAssertEqual(secondTold(), ["2"])
  }
}
