import Connect
import ConnectTesting
import NIOCore
import XCTest

final class InterceptorExplorerTests: XCTestCase {
  // MARK: No alarm

  private static let allAnswers = ExplorerServer.answers(
    .ok,
    .unavailable,
    .unauthenticated,
    .headersThenNothing,
    .reset,
    .messagesThenFailure(.internalError),
    .nothing
  )

  func testPassingInterceptorsRaiseNoAlarm() async throws {
    let chains: [[InterceptorFactory]] = [
      [], [{ _ in PassingInterceptor() }], [{ _ in PassingAsyncInterceptor() }],
      [
        { _ in PassingAsyncInterceptor() }, { _ in PassingInterceptor() }, { _ in PassingAsyncInterceptor() },
      ],
    ]
    for chain in chains {
      let report = try await InterceptorExplorer(of: chain)
        .calls(2)
        .methods([.unary, .serverStream, .clientStream, .bidirectionalStream])
        .server(Self.allAnswers)
        .quiet()
        .explore()
      XCTAssertEqual(report.schedules, 1_000)
      XCTAssertGreaterThan(report.distinct, 200)
    }
  }

  func testOtherSeedsRaiseNoAlarm() async throws {
    for seed: UInt64 in 2...5 {
      try await InterceptorExplorer(of: [{ _ in PassingAsyncInterceptor() }, { _ in PassingInterceptor() }])
        .calls(3)
        .methods([.unary, .serverStream, .clientStream, .bidirectionalStream])
        .server(Self.allAnswers)
        .seed(seed)
        .schedules(400)
        .quiet()
        .explore()
    }
  }

  func testSharedRefreshRaisesNoAlarm() async throws {
    try await Self.tokens(isShared: true).quiet().explore()
  }

  // MARK: Bugs

  private static func tokens(isShared: Bool) -> InterceptorExplorer<TokenStore> {
    InterceptorExplorer { world in
      let store = TokenStore(isShared: isShared) {
        try await world.step("token endpoint")
        return world.token()
      }
      return Subject(observing: store) { _ in TokenInterceptor(store: store) }
    }
    .calls(2)
    .server(.answers(.ok, .unauthenticated, .unavailable))
    .check("one refresh for each stale token") { run in
      run.subject.refreshes
        <= Set(
          run.attempts.filter { $0.answer == .unauthenticated }.map { $0.headers["authorization"] }
        ).count
    }
  }

  func testDoubleRefreshIsFound() async throws {
    let failure = try await Self.failure(of: Self.tokens(isShared: false))
    XCTAssertEqual(failure?.rule, "one refresh for each stale token")
    let replayed = try await Self.replayed(Self.tokens(isShared: false), failure)
    XCTAssertEqual(replayed?.story, failure?.story)
  }

  private static func failure<Observed>(
    of explorer: InterceptorExplorer<Observed>
  ) async throws -> ExplorationFailure? {
    do {
      try await explorer.explore()
      return nil
    } catch let failure as ExplorationFailure {
      return failure
    }
  }

  private static func replayed<Observed>(
    _ explorer: InterceptorExplorer<Observed>,
    _ failure: ExplorationFailure?
  ) async throws -> ExplorationFailure? {
    do {
      try await explorer.replay(failure?.schedule ?? "")
      return nil
    } catch let failure as ExplorationFailure {
      return failure
    }
  }
}
