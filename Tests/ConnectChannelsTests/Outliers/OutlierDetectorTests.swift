import ConnectChannels
import XCTest

final class OutlierDetectorTests: XCTestCase {
  private var random = SeededRandom(seed: 1)
  private let failuresOnly = OutlierDetection(successRate: nil)
  private let ratesOnly = OutlierDetection(failurePercentage: nil)

  private func detector(_ configuration: OutlierDetection, hosts: Int) -> OutlierDetector {
    var detector = OutlierDetector(configuration)
    XCTAssertEqual(detector.update((0..<hosts).map { EndpointID($0) }, now: .zero), [])
    return detector
  }

  /// The slots that a tick ejects after these counts of successes and failures.
  private func ejected(
    _ configuration: OutlierDetection,
    _ counts: [(Int, Int)],
    now: Duration = .seconds(10)
  ) -> [Int] {
    var detector = self.detector(configuration, hosts: counts.count)
    for (slot, (successes, failures)) in counts.enumerated() {
      detector.record(EndpointID(slot), successes: successes, failures: failures)
    }
    return detector.tick(now: now, random: &self.random).compactMap { change in
      if case .ejected(let id) = change { id.slot } else { nil }
    }
  }

  func testAnIntervalOfZeroDoesNotSpin() {
    var configuration = OutlierDetection.defaults
    configuration.interval = .zero
    XCTAssertEqual(self.detector(configuration, hosts: 1).nextTick, .milliseconds(1))
  }

  /// Properties are not brought into their ranges when they are set.
  func testExtremes() {
    let times: [Duration] = [.seconds(Int64.max), .seconds(Int64.min), .zero, Duration(attoseconds: .max)]
    for time in times {
      for maximum in times {
        for deviations in [Double.nan, .infinity, -1, 0] {
          var configuration = OutlierDetection.defaults
          configuration.interval = time
          configuration.baseEjectionTime = time
          configuration.maximumEjectionTime = maximum
          configuration.maximumEjectionPercent = .max
          configuration.successRate?.deviations = deviations
          configuration.failurePercentage?.threshold = .max
          var detector = self.detector(configuration, hosts: 5)
          for round in 1...3 {
            for slot in 0..<5 {
              detector.record(EndpointID(slot), successes: slot > 0 ? 100 : 0, failures: slot > 0 ? 0 : 100)
            }
            _ = detector.tick(now: .seconds(10 * round), random: &self.random)
            XCTAssertNotNil(detector.nextTick)
          }
        }
      }
    }
  }

  func testFailurePercentage() {
    let table: [([(Int, Int)], [Int])] = [
      ([(50, 0), (50, 0), (50, 0), (50, 0), (0, 50)], [4]),
      // Exactly the threshold, and just below.
      ([(50, 0), (50, 0), (50, 0), (50, 0), (15, 85)], [4]),
      ([(50, 0), (50, 0), (50, 0), (50, 0), (16, 84)], []),
      // Too few calls, and thereby too few hosts.
      ([(50, 0), (50, 0), (50, 0), (50, 0), (0, 49)], []),
      ([(50, 0), (50, 0), (50, 0), (0, 50)], []),
      ([(50, 0), (50, 0), (50, 0), (49, 0), (0, 50)], []),
      // At most 10 %, but one.
      ([(0, 50), (0, 50), (0, 50), (0, 50), (0, 50)], [0]),
      (Array(repeating: (0, 50), count: 20), [0, 1]),
      (Array(repeating: (0, 50), count: 29), [0, 1]),
    ]
    for (counts, slots) in table {
      XCTAssertEqual(self.ejected(self.failuresOnly, counts), slots, "\(counts)")
    }
  }

  func testSuccessRate() {
    let table: [([(Int, Int)], [Int])] = [
      // Nine at 100 %, one at 50 %: mean 0.95, deviation 0.15, threshold 0.665.
      (Array(repeating: (100, 0), count: 9) + [(50, 50)], [9]),
      // With five hosts one outlier is two deviations below the mean: mean 0.9, deviation 0.2, threshold 0.52.
      (Array(repeating: (100, 0), count: 4) + [(50, 50)], [4]),
      // Two of ten: mean 0.9, deviation 0.2, threshold 0.52; the limit is one.
      (Array(repeating: (100, 0), count: 8) + [(50, 50), (50, 50)], [8]),
      // Spread evenly: nobody is far from the mean.
      ([(100, 0), (90, 10), (80, 20), (70, 30), (60, 40)], []),
      // All the same.
      (Array(repeating: (90, 10), count: 7), []),
      (Array(repeating: (33, 67), count: 7), []),
      // Too few hosts with enough calls.
      (Array(repeating: (100, 0), count: 3) + [(0, 100)], []),
      (Array(repeating: (100, 0), count: 3) + [(99, 0), (0, 100)], []),
    ]
    for (counts, slots) in table { XCTAssertEqual(self.ejected(self.ratesOnly, counts), slots, "\(counts)") }
  }

  /// The rule in its textbook form.
  func testSuccessRateAgainstTheFormula() {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      for _ in 0..<500 {
        let counts = (0..<12).map { _ in (100 + random.index(below: 900), random.index(below: 300)) }
        let rates = counts.map { Double($0.0) / Double($0.0 + $0.1) }
        let mean = rates.reduce(0, +) / 12
        let deviation = (rates.map { ($0 - mean) * ($0 - mean) }.reduce(0, +) / 12).squareRoot()
        var configuration = self.ratesOnly
        configuration.maximumEjectionPercent = 100
        let expected = rates.indices.filter { rates[$0] < mean - 1.9 * deviation }
        XCTAssertEqual(self.ejected(configuration, counts), expected, "seed \(seed)")
      }
    }
  }

  func testEnforcement() {
    var configuration = self.failuresOnly
    configuration.maximumEjectionPercent = 100
    let counts = Array(repeating: (0, 50), count: 2000)
    configuration.failurePercentage?.enforcement = 30
    XCTAssertEqual(Double(self.ejected(configuration, counts).count), 600, accuracy: 100)
    configuration.failurePercentage?.enforcement = 0
    XCTAssertEqual(self.ejected(configuration, counts), [])
  }

  func testOnlyOneIntervalCounts() {
    var detector = self.detector(self.failuresOnly, hosts: 5)
    for interval in 1...3 {
      for slot in 0..<5 { detector.record(EndpointID(slot), failures: 49) }
      XCTAssertEqual(detector.tick(now: .seconds(interval * 10), random: &self.random), [])
    }
  }

  // MARK: - Time

  /// Fails all calls of the first of ten hosts in the interval before `now`.
  private func fail(_ detector: inout OutlierDetector, now: Duration) -> [OutlierDetector.Change] {
    for slot in 0..<10 {
      let isFailing = slot == 0 && !detector.isEjected(EndpointID(0))
      detector.record(EndpointID(slot), successes: isFailing ? 0 : 100, failures: isFailing ? 100 : 0)
    }
    return detector.tick(now: now, random: &self.random)
  }

  func testEjectionsGrowLongerUpToTheMaximum() {
    var detector = self.detector(self.failuresOnly, hosts: 10)
    var lengths: [Int] = []
    var ejectedAt: Int?
    for second in stride(from: 10, through: 4000, by: 10) {
      for change in self.fail(&detector, now: .seconds(second)) {
        switch change {
        case .ejected: ejectedAt = second
        case .returned: lengths.append(second - (ejectedAt ?? 0))
        }
      }
    }
    XCTAssertEqual(Array(lengths.prefix(12)), [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300])
  }

  func testGoodIntervalsMakeTheNextEjectionShorter() {
    var detector = self.detector(self.failuresOnly, hosts: 10)
    var second = 0
    let tick = { (detector: inout OutlierDetector, isGood: Bool) -> [OutlierDetector.Change] in
      second += 10
      return isGood
        ? detector.tick(now: .seconds(second), random: &self.random)
        : self.fail(&detector, now: .seconds(second))
    }
    // Ejected for 30 s and for 60 s.
    for _ in 0..<2 {
      XCTAssertEqual(tick(&detector, false), [.ejected(EndpointID(0))])
      while detector.isEjected(EndpointID(0)) { _ = tick(&detector, true) }
    }
    XCTAssertEqual(second, 10 + 30 + 10 + 60)
    // Two good intervals, and the count is zero again.
    _ = tick(&detector, true)
    _ = tick(&detector, true)
    XCTAssertEqual(tick(&detector, false), [.ejected(EndpointID(0))])
    let start = second
    while detector.isEjected(EndpointID(0)) { _ = tick(&detector, true) }
    XCTAssertEqual(second - start, 30)
  }

  func testTheBaseIsAlwaysAllowed() {
    var configuration = self.failuresOnly
    configuration.baseEjectionTime = .seconds(50)
    configuration.maximumEjectionTime = .seconds(10)
    var detector = self.detector(configuration, hosts: 10)
    XCTAssertEqual(self.fail(&detector, now: .seconds(10)), [.ejected(EndpointID(0))])
    XCTAssertEqual(detector.tick(now: .seconds(50), random: &self.random), [])
    XCTAssertEqual(detector.tick(now: .seconds(60), random: &self.random), [.returned(EndpointID(0))])
  }

  func testNextTick() {
    var detector = OutlierDetector(self.failuresOnly)
    XCTAssertNil(detector.nextTick)
    _ = detector.update([EndpointID(0)], now: .seconds(3))
    XCTAssertEqual(detector.nextTick, .seconds(13))
    _ = detector.update([EndpointID(1)], now: .seconds(9))
    XCTAssertEqual(detector.nextTick, .seconds(13))
    _ = detector.tick(now: .seconds(14), random: &self.random)
    XCTAssertEqual(detector.nextTick, .seconds(24))
    var faster = self.failuresOnly
    faster.interval = .seconds(2)
    _ = detector.configure(faster, now: .seconds(15))
    XCTAssertEqual(detector.nextTick, .seconds(16))
  }

  // MARK: - Changes

  func testWithoutAlgorithmsAllReturn() {
    var detector = self.detector(self.failuresOnly, hosts: 10)
    _ = self.fail(&detector, now: .seconds(10))
    let off = OutlierDetection(successRate: nil, failurePercentage: nil)
    XCTAssertEqual(detector.configure(off, now: .seconds(11)), [.returned(EndpointID(0))])
    XCTAssertNil(detector.nextTick)
    detector.record(EndpointID(0), failures: 1000)
    XCTAssertEqual(detector.tick(now: .seconds(20), random: &self.random), [])
    XCTAssertEqual(detector.configure(self.failuresOnly, now: .seconds(30)), [])
    XCTAssertEqual(detector.nextTick, .seconds(40))
  }

  func testEndpointsLeave() {
    var configuration = self.failuresOnly
    configuration.maximumEjectionPercent = 50
    var detector = self.detector(configuration, hosts: 10)
    for slot in 0..<10 { detector.record(EndpointID(slot), failures: 100) }
    XCTAssertEqual(detector.tick(now: .seconds(10), random: &self.random).count, 5)
    // Half of six may be ejected.
    let returned = detector.update((0..<6).map { EndpointID($0) }, now: .seconds(11))
    XCTAssertEqual(returned.count, 2)
    XCTAssertEqual(detector.ejectedCount, 3)
    // Others have the slots.
    let others = (0..<6).map { EndpointID(slot: $0, generation: 2) }
    XCTAssertEqual(detector.update(others, now: .seconds(12)), [])
    XCTAssertEqual(detector.ejectedCount, 0)
    detector.record(EndpointID(0), failures: 100)
    XCTAssertFalse(detector.isEjected(others[0]))
  }

  /// Late outcomes of an ejected endpoint neither make up the minimum nor move the mean.
  func testEjectedEndpointsAreNoCandidates() {
    var configuration = OutlierDetection()
    configuration.maximumEjectionPercent = 100
    var detector = self.detector(configuration, hosts: 5)
    for slot in 0..<5 {
      detector.record(EndpointID(slot), successes: 100 - slot / 4 * 100, failures: slot / 4 * 100)
    }
    XCTAssertEqual(detector.tick(now: .seconds(10), random: &self.random), [.ejected(EndpointID(4))])
    for slot in 0..<5 {
      detector.record(EndpointID(slot), successes: slot / 3 == 0 ? 100 : 0, failures: slot / 3 * 100)
    }
    XCTAssertEqual(detector.tick(now: .seconds(20), random: &self.random), [])
  }

  // MARK: - Model

  func testRandomModel() {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      var configuration = OutlierDetection()
      configuration.maximumEjectionPercent = [0, 10, 34, 100][random.index(below: 4)]
      var detector = OutlierDetector(configuration)
      var ids: [EndpointID] = []
      var ejected: [EndpointID: Duration] = [:]
      var nextSlot = 0
      for step in 1...2000 {
        let now = Duration.seconds(step * 10)
        var changes: [OutlierDetector.Change] = []
        if step == 1 || random.index(below: 20) == 0 {
          ids.removeAll { _ in random.index(below: 4) == 0 }
          for _ in 0..<random.index(below: 12) {
            ids.append(EndpointID(nextSlot))
            nextSlot += 1
          }
          ids.shuffle(using: &random)
          ejected = ejected.filter { ids.contains($0.key) }
          changes += detector.update(ids, now: now)
        }
        for id in ids {
          let failures = random.index(below: 200)
          detector.record(
            id,
            successes: 200 - failures,
            failures: random.index(below: 3) == 0 ? 2000 : failures
          )
        }
        let before = ejected
        changes += detector.tick(now: now, random: &random)
        for change in changes {
          switch change {
          case .ejected(let id):
            XCTAssertTrue(ids.contains(id), "seed \(seed)")
            XCTAssertNil(ejected.updateValue(now, forKey: id), "seed \(seed)")
          case .returned(let id):
            XCTAssertNotNil(ejected.removeValue(forKey: id), "seed \(seed)")
          }
        }
        XCTAssertEqual(Set(ids.filter(detector.isEjected)), Set(ejected.keys), "seed \(seed)")
        XCTAssertLessThanOrEqual(
          ejected.count,
          max(1, ids.count * configuration.maximumEjectionPercent / 100)
        )
        // Each ejection ends, after 300 s at most.
        for (id, start) in before where ejected[id] == start {
          XCTAssertLessThan(now - start, .seconds(300), "seed \(seed)")
        }
      }
    }
  }
}
