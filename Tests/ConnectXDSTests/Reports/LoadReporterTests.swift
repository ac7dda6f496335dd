import Connect
import ConnectChannels
import ConnectTesting
import SwiftProtobuf
import XCTest

@testable import ConnectXDS

final class LoadReporterTests: XCTestCase {
  private typealias Request = Envoy_Service_LoadStats_V3_LoadStatsRequest

  private final class Stream: LoadReportStream, @unchecked Sendable {
    let handle: @Sendable (LoadReporter.Event) -> Void
    var requests: [Request] = []
    var takesRequests = true
    var completions: [@Sendable () -> Void] = []
    var isCancelled = false

    init(_ handle: @escaping @Sendable (LoadReporter.Event) -> Void) {
      self.handle = handle
    }

    func send(
      _ request: Envoy_Service_LoadStats_V3_LoadStatsRequest,
      completion: @escaping @Sendable () -> Void
    ) {
      self.requests.append(request)
      if self.takesRequests { completion() } else { self.completions.append(completion) }
    }

    func requestNext() {}

    func cancel() { self.isCancelled = true }
  }

  private final class Server: @unchecked Sendable {
    var streams: [Stream] = []
  }

  private let executor = VirtualExecutor()
  private let table = StatisticsTable()
  private let server = Server()
  private var reporter: LoadReporter?
  private let key = StatisticsTable.Key(cluster: "a", service: "ea")

  override func setUp() {
    var node = Envoy_Config_Core_V3_Node()
    node.id = "me"
    let server = self.server
    self.reporter = LoadReporter(self.table, node, on: self.executor, random: SeededRandom(seed: 1)) {
      handle in
      let stream = Stream(handle)
      server.streams.append(stream)
      return stream
    }
  }

  private func use(_ key: StatisticsTable.Key) {
    self.executor.sync {
      _ = self.table.acquire(key)
      self.table.note(key, isReported: true, localities: [XDSLocality(zone: "z")], now: self.executor.now)
    }
  }

  private func answer(all: Bool = true, _ clusters: [String] = [], every seconds: Int64 = 10) {
    self.executor.sync {
      var response = Envoy_Service_LoadStats_V3_LoadStatsResponse()
      response.sendAllClusters = all
      response.clusters = clusters
      response.loadReportingInterval.seconds = seconds
      self.server.streams.last?.handle(.response(response))
    }
  }

  private var reports: [Request] {
    self.executor.sync { Array((self.server.streams.last?.requests ?? []).dropFirst()) }
  }

  func testAStreamAsLongAsClustersAreReported() {
    XCTAssertEqual(self.server.streams.count, 0)
    self.use(self.key)
    XCTAssertEqual(self.server.streams.count, 1)
    XCTAssertEqual(self.server.streams[0].requests.map(\.node.id), ["me"])
    XCTAssertEqual(self.server.streams[0].requests.map(\.clusterStats.count), [0])
    self.answer()
    self.executor.sync { self.table.release(self.key) }
    XCTAssertFalse(self.server.streams[0].isCancelled, "the last counts are still to be sent")
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(self.reports.map { $0.clusterStats.map(\.clusterName) }, [["a"]])
    XCTAssertTrue(self.server.streams[0].isCancelled)
    self.use(self.key)
    XCTAssertEqual(self.server.streams.count, 2)
  }

  func testAClusterThatIsGoneBeforeTheServerAsks() {
    self.use(self.key)
    self.executor.sync { self.table.release(self.key) }
    XCTAssertTrue(self.server.streams[0].isCancelled)
  }

  func testReportsAtTheServersInterval() {
    self.use(self.key)
    self.answer(every: 10)
    self.executor.advance(by: .milliseconds(9_999))
    XCTAssertEqual(self.reports.count, 0)
    self.executor.advance(by: .milliseconds(1))
    XCTAssertEqual(self.reports.count, 1)
    XCTAssertEqual(self.reports[0].clusterStats[0].clusterServiceName, "ea")
    XCTAssertEqual(self.reports[0].clusterStats[0].loadReportInterval.seconds, 10)
    // Nothing was counted twice: the second report is not sent.
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(self.reports.count, 1)
    // Another interval begins at once, and is 1 s at least.
    self.answer(every: 0)
    self.executor.advance(by: .milliseconds(999))
    self.executor.advance(by: .milliseconds(1))
    XCTAssertEqual(self.executor.sync { self.executor.scheduled }, [.seconds(22)])
  }

  func testOnlyTheClustersThatTheServerAsksFor() {
    self.use(self.key)
    self.use(.init(cluster: "b", service: ""))
    self.answer(all: false, ["b", "c"])
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(self.reports.map { $0.clusterStats.map(\.clusterName) }, [["b"]])
  }

  func testALostStreamBeginsAgain() {
    self.use(self.key)
    var starts: [Duration] = []
    for _ in 0..<12 {
      self.executor.sync { self.server.streams.last?.handle(.end) }
      let before = self.server.streams.count
      self.executor.advanceToNext()
      XCTAssertEqual(self.server.streams.count, before + 1)
      starts.append(self.executor.now)
    }
    let delays = zip(starts, [.zero] + starts).map { ($0 - $1) / Duration.seconds(1) }
    var expected = 1.0
    for delay in delays {
      XCTAssertGreaterThanOrEqual(delay, expected * 0.8 - 0.001)
      XCTAssertLessThanOrEqual(delay, expected * 1.2 + 0.001)
      expected = min(expected * 1.6, 120)
    }
    // A stream that has worked begins again soon.
    self.answer()
    let now = self.executor.now
    self.executor.sync { self.server.streams.last?.handle(.end) }
    self.executor.advanceToNext()
    XCTAssertLessThanOrEqual(self.executor.now - now, .milliseconds(1_200))
    XCTAssertEqual(self.server.streams.last?.requests.map(\.node.id), ["me"])
  }

  /// Reports do not pile up, and the last one is not cut off.
  func testAServerThatDoesNotRead() {
    self.use(self.key)
    self.answer(every: 10)
    let stream = self.server.streams[0]
    self.executor.sync { stream.takesRequests = false }
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(self.reports.count, 1)
    self.executor.sync { self.table.release(self.key) }
    self.executor.advance(by: .seconds(60))
    XCTAssertEqual(self.reports.count, 1)
    XCTAssertFalse(stream.isCancelled)
    self.executor.sync { stream.completions.removeFirst()() }
    self.use(.init(cluster: "b", service: ""))
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(self.reports.map { $0.clusterStats.map(\.clusterName) }, [["a"]], "nothing was counted")
    self.executor.sync { self.table.release(.init(cluster: "b", service: "")) }
    self.executor.advance(by: .seconds(10))
    XCTAssertTrue(stream.isCancelled)
  }

  /// A control plane may change names for ever.
  func testLocalitiesThatAreGoneAreForgotten() {
    self.use(self.key)
    for number in 0..<3 {
      self.executor.sync {
        let localities = [XDSLocality(zone: "z\(number)")]
        self.table.note(self.key, isReported: true, localities: localities, now: self.executor.now)
        XCTAssertEqual(self.table.take(nil, now: self.executor.now).map(\.localities.count), [2])
        XCTAssertEqual(self.table.take(nil, now: self.executor.now).map(\.localities.count), [1])
      }
    }
  }

  func testEventsOfOldStreamsDoNotCount() {
    self.use(self.key)
    let old = self.server.streams[0]
    self.executor.sync { old.handle(.end) }
    self.executor.advanceToNext()
    XCTAssertEqual(self.server.streams.count, 2)
    self.executor.sync { old.handle(.end) }
    self.answer()
    self.executor.advance(by: .seconds(10))
    XCTAssertEqual(self.reports.count, 1)
  }

  func testWhatIsReported() {
    var counts = CallStatistics.Counts()
    var zone = CallStatistics.Counts.Zone()
    (zone.issued, zone.succeeded, zone.failed, zone.inFlight) = (9, 4, 3, 2)
    let name = XDSLocality(region: "r", zone: "z", subZone: "s")
    counts.zones = [name.description: zone, "quiet": .init()]
    counts.drops = ["b": 2, "a": 1, "none": 0]
    counts.refused = 5
    let message = StatisticsTable.Counted(
      key: self.key,
      counts: counts,
      localities: [name.description: name],
      interval: .milliseconds(2_500)
    ).message
    XCTAssertEqual(message.clusterName, "a")
    XCTAssertEqual(message.upstreamLocalityStats.count, 1)
    let stats = message.upstreamLocalityStats[0]
    XCTAssertEqual([stats.locality.region, stats.locality.zone, stats.locality.subZone], ["r", "z", "s"])
    XCTAssertEqual(
      [
        stats.totalIssuedRequests, stats.totalSuccessfulRequests, stats.totalErrorRequests,
        stats.totalRequestsInProgress,
      ],
      [9, 4, 3, 2]
    )
    XCTAssertEqual(message.droppedRequests.map(\.category), ["a", "b"])
    XCTAssertEqual(message.droppedRequests.map(\.droppedCount), [1, 2])
    XCTAssertEqual(message.totalDroppedRequests, 8)
    XCTAssertEqual(message.loadReportInterval.seconds, 2)
    XCTAssertEqual(message.loadReportInterval.nanos, 500_000_000)
  }
}
