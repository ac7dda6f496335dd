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

  private enum TenantKey: CallContextKey {
    static let defaultValue = "nobody"
  }

  /// Each call has the context and the interceptors that the test gives it. The server understands it, whatever format it asks for.
  func testOptionsOfCalls() async throws {
    let good = TestCount()
    try await InterceptorExplorer(of: { _ in
      HookedInterceptor {
        UnaryFunction(updateRequest: { $0.headers["x-tenant"] = [$0.context[TenantKey.self]] })
      }
    })
    .calls(3)
    .options { call, options in
      if call > 1 { options.context[TenantKey.self] = "tenant \(call)" }
      options.headers = ["x-ignored": ["yes"]]
      options.timeout = .milliseconds(1)
      options.codec = JSONCodec()
      options.requestCompression = .pool(GzipCompressionPool())
      options.interceptors.append { _ in
        HookedInterceptor { UnaryFunction(updateRequest: { $0.headers["x-inner"] = ["\(call)"] }) }
      }
    }
    .configuration { $0.methodFormats = { _ in MethodFormat(codec: JSONCodec()) } }
    .check("options are there") { run in
      let isGood = run.calls.allSatisfy { $0.code == .ok && $0.received.count == 1 && !$0.attempts.isEmpty }
      if isGood, run.calls.count == 3 { good.add() }
      return run.attempts.allSatisfy { attempt in
        attempt.headers["x-tenant"] == [attempt.call > 1 ? "tenant \(attempt.call)" : "nobody"]
          && attempt.headers["x-inner"] == ["\(attempt.call)"] && attempt.headers["x-ignored"].isEmpty
      }
    }
    .check("the timeout is the explorer's") { run in
      run.calls.allSatisfy { $0.deadline.map { $0 >= .seconds(60) } ?? true }
    }
    .quiet()
    .explore()
    XCTAssertGreaterThan(good.value, 100)
  }

  /// Those of a call's options are released with their call, too.
  func testInstancesOfOptionsAreReleased() async throws {
    let explorer = InterceptorExplorer(of: [])
      .options { _, options in options.interceptors.append { _ in Mistakes.Registered() } }
    try await self.expect("instances are released", explorer)
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

  // MARK: State outside of the closure

  /// Swallows some of the errors that it sees in its process.
  private func swallowing(
    _ isSwallowed: @escaping @Sendable (_ number: Int) -> Bool
  ) -> InterceptorExplorer<Void> {
    let count = TestCount()
    return InterceptorExplorer(of: { _ in
      HookedInterceptor {
        UnaryFunction(updateResponse: { response in
          guard response.code == .unavailable else { return .proceed }
          count.add()
          if isSwallowed(count.value) { response = HTTPResponse(message: ByteBuffer()) }
          return .proceed
        })
      }
    })
  }

  func testAFailureThatDoesNotComeAgainSaysSo() async throws {
    do {
      try await self.swallowing { $0 == 5 }.explore()
      XCTFail("nothing was found")
    } catch let failure as ExplorationFailure {
      XCTAssertEqual(failure.rule, "errors are not swallowed")
      XCTAssertFalse(failure.breaksAgain)
      XCTAssertTrue(
        failure.description.contains("was not broken when the schedule ran again"),
        failure.description
      )
    }
  }

  func testAFailureThatComesAgainAtTimesHasItsStory() async throws {
    do {
      try await self.swallowing { $0.isMultiple(of: 3) }.explore()
      XCTFail("nothing was found")
    } catch let failure as ExplorationFailure {
      XCTAssertTrue(failure.breaksAgain, failure.description)
      XCTAssertTrue(failure.story.contains("call 1 ends: ok"), failure.description)
      XCTAssertFalse(
        failure.description.contains("was not broken when the schedule ran again"),
        failure.description
      )
    }
  }
}
