import Connect
import ConnectChannels
import ConnectTesting
import XCTest

@testable import ConnectXDS

final class DependencyWatchTests: XCTestCase {
  private let resources = FakeResources()
  private let names = PushResolver()
  private let answers = Answers()

  private final class Answers: @unchecked Sendable {
    var all: [DependencyWatch.Answer] = []
    var watch: DependencyWatch?
  }

  private func start(host: String = "orders") {
    let environment = DependencyWatch.Environment(
      executor: self.resources.executor,
      source: self.resources,
      resolver: self.names
    )
    self.resources.executor.sync {
      let graph = DependencyGraph(listenerName: "listener", host: host)
      let answers = self.answers
      answers.watch = DependencyWatch(graph, in: environment) { answers.all.append($0) }
      answers.watch?.start()
    }
    self.resources.executor.runUntilIdle()
  }

  override func tearDown() { self.resources.executor.sync { self.answers.watch?.cancel() } }

  /// What clusters there are, in one text, or the error.
  private var last: String {
    self.resources.executor.sync {
      switch self.answers.all.last {
      case nil: "nothing"
      case .failure(let absence):
        (["failure \(absence.error.message ?? "")"] + Self.texts(absence.clusters)).joined(separator: ", ")
      case .success(let configuration): Self.texts(configuration.clusters).joined(separator: ", ")
      }
    }
  }

  private static func texts(_ clusters: [String: XDSConfiguration.Cluster]) -> [String] {
    clusters.sorted { $0.key < $1.key }
      .map { name, cluster in
        switch cluster {
        case .problem(let problem): "\(name)!\(problem)"
        case .leaf(let leaf): "\(name)=\(leaf.text)"
        case .aggregate(let leaves):
          "\(name)=[\(leaves.map { "\($0.name)=\($0.text)" }.joined(separator: " "))]"
        }
      }
  }

  private func keep(_ names: String...) {
    self.resources.executor.sync { self.answers.watch?.keepClusters(Set(names)) }
    self.resources.executor.runUntilIdle()
  }

  private var count: Int { self.resources.executor.sync { self.answers.all.count } }

  func testAllResourcesAreNeeded() {
    self.start()
    XCTAssertEqual(self.resources.watched, ["listener listener"])
    self.resources.set("listener", .listener(.named("routes")))
    XCTAssertEqual(self.resources.watched, ["listener listener", "routeConfiguration routes"])
    self.resources.set("routes", .routeConfiguration(.to("a", "b")))
    XCTAssertEqual(
      self.resources.watched,
      ["cluster a", "cluster b", "listener listener", "routeConfiguration routes"]
    )
    self.resources.set([("a", .cluster(.endpoints("ea"))), ("b", .cluster(.endpoints("eb")))])
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    XCTAssertEqual(self.last, "nothing")
    self.resources.set("eb", .endpoints(.at("10.0.0.2:1")))
    XCTAssertEqual(self.last, "a=10.0.0.1:1, b=10.0.0.2:1")
    XCTAssertEqual(self.count, 1)
  }

  /// Simulations repeat.
  func testWatchesEndInTheOrderOfTheirBeginning() {
    self.start()
    let names = ["d", "a", "c", "b", "f", "e"]
    self.resources.set("listener", .listener(.inline(.to("d", "a", "c"), .to("b", "f", "e"))))
    for name in names { self.resources.set(name, .cluster(.endpoints("e\(name)"))) }
    for name in names { self.resources.set("e\(name)", .endpoints(.at("10.0.0.1:1"))) }
    self.resources.set("listener", .listener(.inline()))
    XCTAssertEqual(self.resources.executor.sync { self.resources.cancelled }, names + names.map { "e\($0)" })
  }

  func testTheSameProblemIsSaidOnce() {
    self.start()
    for _ in 0..<2 { self.resources.remove(.listener, "listener") }
    XCTAssertEqual(self.count, 1)
    self.resources.set("listener", .listener(.inline()))
    self.resources.remove(.listener, "listener")
    XCTAssertEqual(self.count, 3)
  }

  func testResourcesOfOneResponseCountTogether() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a"), .to("b"))))
    self.resources.set([("a", .cluster(.endpoints("ea"))), ("b", .cluster(.endpoints("eb")))])
    self.resources.set([("ea", .endpoints(.at("10.0.0.1:1"))), ("eb", .endpoints(.at("10.0.0.2:1")))])
    self.resources.set([("ea", .endpoints(.at("10.0.0.3:1"))), ("eb", .endpoints(.at("10.0.0.4:1")))])
    XCTAssertEqual(self.last, "a=10.0.0.3:1, b=10.0.0.4:1")
    XCTAssertEqual(self.count, 2)
    // The same again is no news.
    self.resources.set("ea", .endpoints(.at("10.0.0.3:1")))
    XCTAssertEqual(self.count, 2)
  }

  func testMakeBeforeBreak() {
    self.start()
    self.resources.set("listener", .listener(.named("routes")))
    self.resources.set("routes", .routeConfiguration(.to("a")))
    self.resources.set("a", .cluster(.endpoints("ea")))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    XCTAssertEqual(self.last, "a=10.0.0.1:1")

    // Another route configuration: the clusters of the old one are watched until it is there.
    self.resources.set("listener", .listener(.named("routes2")))
    XCTAssertTrue(self.resources.watched.contains("endpoints ea"))
    self.resources.set("ea", .endpoints(.at("10.0.0.9:1")))
    XCTAssertEqual(self.count, 1)
    self.resources.set("routes2", .routeConfiguration(.to("b")))
    self.resources.set("b", .cluster(.endpoints("eb")))
    XCTAssertEqual(self.last, "a=10.0.0.1:1", "the new cluster has no endpoints yet")
    self.resources.set("eb", .endpoints(.at("10.0.0.2:1")))
    XCTAssertEqual(self.last, "b=10.0.0.2:1")
    XCTAssertEqual(
      self.resources.watched,
      ["cluster b", "endpoints eb", "listener listener", "routeConfiguration routes2"]
    )
  }

  func testAMissingClusterFailsAlone() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a", "b"))))
    self.resources.set("a", .cluster(.endpoints("ea")))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    self.resources.remove(.cluster, "b")
    XCTAssertEqual(self.last, "a=10.0.0.1:1, b!b does not exist")
    self.resources.set("b", .cluster(.endpoints("eb")))
    self.resources.remove(.endpoints, "eb")
    XCTAssertEqual(self.last, "a=10.0.0.1:1, b=(eb does not exist)")
  }

  func testAListenerThatIsDeletedEndsAllWatches() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a"))))
    self.resources.set("a", .cluster(.endpoints("ea")))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    self.resources.remove(.listener, "listener")
    XCTAssertEqual(self.last, "failure listener does not exist")
    XCTAssertEqual(self.resources.watched, ["listener listener"])
    self.resources.set("listener", .listener(.inline(.to("a"))))
    XCTAssertEqual(self.last, "a=10.0.0.1:1")
  }

  // MARK: Clusters that calls hold

  /// gRFC A31.
  func testAClusterThatCallsHoldIsWatched() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a"))))
    self.resources.set("a", .cluster(.endpoints("ea")))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    self.keep("a")
    XCTAssertEqual(self.count, 1, "no news")
    self.resources.set([("b", .cluster(.endpoints("eb"))), ("eb", .endpoints(.at("10.0.0.2:1")))])
    self.resources.set("listener", .listener(.inline(.to("b"))))
    XCTAssertEqual(self.last, "a=10.0.0.1:1, b=10.0.0.2:1")
    self.resources.set("ea", .endpoints(.at("10.0.0.9:1")))
    XCTAssertEqual(self.last, "a=10.0.0.9:1, b=10.0.0.2:1")
    self.resources.remove(.cluster, "a")
    XCTAssertEqual(self.last, "a!a does not exist, b=10.0.0.2:1")
    self.keep("b")
    XCTAssertEqual(self.last, "b=10.0.0.2:1")
    XCTAssertEqual(self.resources.watched, ["cluster b", "endpoints eb", "listener listener"])
  }

  func testTheLeavesOfAnAggregateThatCallsHoldAreWatched() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("top"))))
    self.resources.set("top", .cluster(.aggregate("a")))
    self.resources.set([("a", .cluster(.endpoints("ea"))), ("b", .cluster(.endpoints("eb")))])
    self.resources.set([("ea", .endpoints(.at("10.0.0.1:1"))), ("eb", .endpoints(.at("10.0.0.2:1")))])
    self.keep("top")
    self.resources.set("listener", .listener(.inline(.to("b"))))
    XCTAssertEqual(self.last, "b=10.0.0.2:1, top=[a=10.0.0.1:1]")
    self.resources.set("ea", .endpoints(.at("10.0.0.9:1")))
    XCTAssertEqual(self.last, "b=10.0.0.2:1, top=[a=10.0.0.9:1]")
  }

  /// A channel may say late what it holds. Routes do not wait for such clusters.
  func testAClusterThatIsHeldAndNotKnownHoldsNothingUp() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("b"))))
    self.resources.set("b", .cluster(.endpoints("eb")))
    self.keep("a", "b")
    self.resources.set("eb", .endpoints(.at("10.0.0.2:1")))
    XCTAssertEqual(self.last, "b=10.0.0.2:1")
    XCTAssertTrue(self.resources.watched.contains("cluster a"))
    self.resources.set("a", .cluster(.endpoints("ea")))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    XCTAssertEqual(self.last, "a=10.0.0.1:1, b=10.0.0.2:1")
  }

  func testAListenerThatIsDeletedLeavesTheClustersThatCallsHold() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a"))))
    self.resources.set("a", .cluster(.endpoints("ea")))
    self.resources.set("ea", .endpoints(.at("10.0.0.1:1")))
    self.keep("a")
    self.resources.remove(.listener, "listener")
    XCTAssertEqual(self.last, "failure listener does not exist, a=10.0.0.1:1")
    self.resources.set("ea", .endpoints(.at("10.0.0.9:1")))
    XCTAssertEqual(self.last, "failure listener does not exist, a=10.0.0.9:1")
    self.keep()
    XCTAssertEqual(self.last, "failure listener does not exist")
    XCTAssertEqual(self.resources.watched, ["listener listener"])
  }

  func testNoVirtualHost() {
    self.start()
    self.resources.set("listener", .listener(.named("routes")))
    self.resources.set("routes", .routeConfiguration(.to("a", domain: "other")))
    XCTAssertTrue(self.last.contains("no virtual host for \"orders\""), self.last)
    XCTAssertEqual(self.resources.watched, ["listener listener", "routeConfiguration routes"])
    self.resources.remove(.routeConfiguration, "routes")
    XCTAssertEqual(self.last, "failure routes does not exist")
  }

  func testAggregates() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("top"), .to("a"))))
    self.resources.set([
      ("top", .cluster(.aggregate("inner", "a", "gone", "top"))),
      // A cycle, and a cluster that is there twice: the first place counts.
      ("inner", .cluster(.aggregate("b", "inner", "top", "a"))),
      ("a", .cluster(.endpoints("ea"))), ("b", .cluster(.endpoints("eb"))),
    ])
    XCTAssertTrue(self.resources.watched.contains("cluster gone"))
    self.resources.set([
      ("ea", .endpoints(.at("10.0.0.1:1"))), ("eb", .endpoints(.at("10.0.0.2:1"))),
    ])
    // The clusters within aggregates that were just learned are watched now.
    self.resources.set([
      ("inner", .cluster(.aggregate("b", "inner", "top", "a"))), ("b", .cluster(.endpoints("eb"))),
    ])
    self.resources.set("eb", .endpoints(.at("10.0.0.2:1")))
    XCTAssertEqual(self.last, "nothing")
    self.resources.remove(.cluster, "gone")
    XCTAssertEqual(self.last, "a=10.0.0.1:1, top=[b=10.0.0.2:1 a=10.0.0.1:1]")
  }

  func testAnAggregateWithoutLeaves() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("top"))))
    self.resources.set("top", .cluster(.aggregate("top")))
    XCTAssertTrue(self.last.contains("leads to no cluster"), self.last)
  }

  func testTheDepthOfAggregates() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("0"))))
    // Clusters 0 to 14 are aggregates, 15 is a leaf: 16 levels.
    for level in 0..<15 { self.resources.set("\(level)", .cluster(.aggregate("\(level + 1)"))) }
    self.resources.set("15", .cluster(.endpoints("e")))
    self.resources.set("e", .endpoints(.at("10.0.0.1:1")))
    XCTAssertEqual(self.last, "0=[15=10.0.0.1:1]")
    self.resources.set("15", .cluster(.aggregate("16")))
    XCTAssertTrue(self.last.contains("more than 16 levels"), self.last)
  }

  func testLogicalDNS() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a"))))
    let cluster = ClusterResource(
      kind: .logicalDNS(host: "db.test", port: 80),
      policy: .byLocality(.pickFirst)
    )
    self.resources.set("a", .cluster(cluster))
    XCTAssertEqual(self.last, "nothing")
    self.names.fail(ConnectError(code: .unavailable, message: "no servers"))
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.last, "a=(the name \"db.test\" of a cluster has no addresses: no servers)")
    self.names.update([Endpoint("10.0.0.7:80")!])
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.last, "a=10.0.0.7:80")
    // The last good addresses stay.
    self.names.fail(ConnectError(code: .unavailable, message: "no servers"))
    self.resources.executor.runUntilIdle()
    XCTAssertEqual(self.last, "a=10.0.0.7:80")
  }

  func testNothingIsReportedAfterTheEnd() {
    self.start()
    self.resources.set("listener", .listener(.inline(.to("a"))))
    self.resources.executor.sync { self.answers.watch?.cancel() }
    XCTAssertEqual(self.resources.watched, [])
    self.resources.remove(.listener, "listener")
    XCTAssertEqual(self.count, 0)
  }
}

extension XDSConfiguration.Leaf {
  fileprivate var text: String {
    guard let endpoints else { return "(\(self.note ?? ""))" }
    return endpoints.priorities.joined().flatMap(\.endpoints).map(\.description).joined(separator: "+")
  }
}
