import ConnectTesting
import XCTest

extension XCTestCase {
  /// Explores, expects that `rule` is broken, that the printed schedule breaks it again, and that it does not if the rule is lifted as
  /// the failure says.
  func expect<Observed>(
    _ rule: String,
    _ explorer: InterceptorExplorer<Observed>,
    file: StaticString = #filePath,
    line: UInt = #line
  ) async throws {
    do {
      try await explorer.explore()
      XCTFail("nothing was found", file: file, line: line)
    } catch let failure as ExplorationFailure {
      XCTAssertEqual(failure.rule, rule, failure.description, file: file, line: line)
      XCTAssertTrue(failure.breaksAgain, failure.description, file: file, line: line)
      do {
        try await explorer.replay(failure.schedule)
        XCTFail("not found again", file: file, line: line)
      } catch let again as ExplorationFailure {
        XCTAssertEqual(again.story, failure.story, file: file, line: line)
      }
      guard let allowance = failure.allowance else { return }
      XCTAssertTrue(failure.description.contains(".allowing(\(allowance))"), file: file, line: line)
      do {
        try await explorer.allowing(allowance).replay(failure.schedule)
      } catch let other as ExplorationFailure {
        XCTAssertNotEqual(other.rule, rule, "\(allowance) does not lift the rule", file: file, line: line)
      }
    }
  }
}
