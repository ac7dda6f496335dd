import ConnectChannels
import XCTest

final class SeededRandomTests: XCTestCase {
  /// The published first numbers of SplitMix64 with the seed 1234567.
  func testKnownNumbers() {
    var random = SeededRandom(seed: 1_234_567)
    let numbers = (0..<5).map { _ in random.next() }
    XCTAssertEqual(
      numbers,
      [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ]
    )
  }

  func testIndicesAreEven() {
    for seed in seeds {
      var random = SeededRandom(seed: seed)
      var counts = Array(repeating: 0, count: 7)
      for _ in 0..<70_000 { counts[random.index(below: 7)] += 1 }
      for count in counts { XCTAssertEqual(Double(count), 10_000, accuracy: 500, "seed \(seed)") }
      XCTAssertEqual(random.index(below: 1), 0)
    }
  }
}
