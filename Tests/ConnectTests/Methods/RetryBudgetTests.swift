import Connect
import Dispatch
import XCTest

final class RetryBudgetTests: XCTestCase {
  func testTokens() {
    let budget = RetryBudget(maximumTokens: 4, tokenRatio: 0.5)
    XCTAssertTrue(budget.allowsRetry)
    budget.recordSuccess()
    XCTAssertEqual(budget.tokens, 4)
    XCTAssertTrue(budget.recordFailure())
    XCTAssertFalse(budget.recordFailure())
    XCTAssertEqual(budget.tokens, 2)
    XCTAssertFalse(budget.allowsRetry)
    budget.recordSuccess()
    XCTAssertTrue(budget.allowsRetry)
    for _ in 0..<10 { budget.recordFailure() }
    XCTAssertEqual(budget.tokens, 0)
    for _ in 0..<10 { budget.recordSuccess() }
    XCTAssertEqual(budget.tokens, 4)
  }

  func testOddParameters() {
    XCTAssertEqual(RetryBudget(maximumTokens: -3).tokens, 1)
    XCTAssertEqual(RetryBudget(maximumTokens: .infinity).tokens, 1_000_000)
    let budget = RetryBudget(maximumTokens: 10, tokenRatio: -1)
    budget.recordFailure()
    budget.recordSuccess()
    XCTAssertEqual(budget.tokens, 9.001)
  }

  func testNoChangeIsLostAmongThreads() {
    let budget = RetryBudget(maximumTokens: 100_000, tokenRatio: 0.1)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<1000 {
        budget.recordFailure()
        budget.recordSuccess()
      }
    }
    XCTAssertEqual(budget.tokens, 92_800, accuracy: 0.001)
  }
}
