import Connect
import ConnectTesting
import Synchronization
import XCTest

/// Each rule that holds without being asked for is broken by one interceptor.
final class ExplorerRulesTests: XCTestCase {
  func testLateProceed() async throws {
    try await self.expect("nothing after the end", InterceptorExplorer(of: { _ in Mistakes.lateProceed() }))
  }

  func testProceedTwice() async throws {
    try await self.expect("proceed once", InterceptorExplorer(of: { _ in Mistakes.proceedTwice() }))
  }

  func testSilenceOnErrors() async throws {
    try await self.expect("each call ends", InterceptorExplorer(of: { _ in Mistakes.silentOnErrors() }))
  }

  func testDroppedProceed() async throws {
    try await self.expect("each hook goes on", InterceptorExplorer(of: { _ in Mistakes.dropsProceed() }))
  }

  func testEndlessRetry() async throws {
    try await self.expect("at most 10 attempts", InterceptorExplorer(of: { _ in Mistakes.endlessRetry() }))
  }

  func testHeadersThatPileUp() async throws {
    try await self.expect(
      "headers do not pile up",
      InterceptorExplorer(of: { _ in Mistakes.pilesUpHeaders() })
    )
  }

  func testLostTrailers() async throws {
    try await self.expect(
      "headers and trailers arrive",
      InterceptorExplorer(of: { _ in Mistakes.losesTrailers() })
    )
  }

  func testHeadersOfEarlierAttempts() async throws {
    for name in ["x-answer", "x-answer-trailer"] {
      let explorer = InterceptorExplorer(of: { _ in Mistakes.keepsMetadata(name) })
      try await self.expect("headers and trailers arrive", explorer)
      try await explorer.allowing(.changedMetadata).quiet().explore()
    }
  }

  /// An interceptor that creates a new error may leave out the headers.
  func testOtherErrorsRaiseNoAlarm() async throws {
    try await InterceptorExplorer(of: { _ in HookedInterceptor.redactingErrors() }).quiet().explore()
  }

  func testDoubledHeaders() async throws {
    for name in ["x-answer", "x-answer-trailer"] {
      let explorer = InterceptorExplorer(of: { _ in Mistakes.doublesMetadata(name) })
      try await self.expect("headers and trailers arrive", explorer)
    }
  }

  func testSwallowedErrors() async throws {
    let explorer = InterceptorExplorer(of: { _ in Mistakes.swallowsErrors() })
    try await self.expect("errors are not swallowed", explorer)
    try await explorer.allowing(.recovery).quiet().explore()
  }

  /// The response of an earlier call with the same request, when the server fails this one.
  func testStaleAnswers() async throws {
    let explorer = InterceptorExplorer { _ in
      let kept = Mutex<HTTPResponse?>(nil)
      return Subject { _ in
        HookedInterceptor {
          UnaryFunction(updateResponse: { response in
            if response.code == .ok { kept.withLock { [response] in $0 = response } }
            if response.code == .unavailable, let old = kept.withLock({ $0 }) { response = old }
            return .proceed
          })
        }
      }
    }
    .calls(2).requests { _ in ("the same", [:]) }
    try await self.expect("errors are not swallowed", explorer)
    try await explorer.allowing(.recovery).quiet().explore()
  }

  func testLostAnswers() async throws {
    let explorer = InterceptorExplorer(of: { _ in Mistakes.failsGoodAnswers() })
    try await self.expect("good answers are not lost", explorer)
    try await explorer.allowing(.failure).quiet().explore()
  }

  func testInstancesThatLiveOn() async throws {
    let explorer = InterceptorExplorer(of: { _ in Mistakes.Registered() })
    try await self.expect("instances are released", explorer)
    try await explorer.schedules(100).allowing(.sharedInstances).quiet().explore()
  }

  func testASharedInstanceRaisesNoAlarm() async throws {
    let shared = Mistakes.Registered()
    try await InterceptorExplorer(of: { _ in shared }).quiet().explore()
    try await InterceptorExplorer(of: { _ in shared }).calls(2).quiet().explore()
  }

  /// One instance that is shared does not hide those that leak, neither among calls nor among schedules.
  func testASharedInstanceHidesNoLeak() async throws {
    let shared = Mistakes.Registered()
    let explorer = InterceptorExplorer(of: [{ _ in shared }, { _ in Mistakes.Registered() }])
    try await self.expect("instances are released", explorer)
    try await self.expect("instances are released", explorer.calls(2))
  }

  func testPoller() async throws {
    let explorer = InterceptorExplorer { world in Subject { _ in Mistakes.poller(world.clock) } }
    try await self.expect("background work ends", explorer)
    try await explorer.schedules(100).allowing(.backgroundWork, .sharedInstances).quiet().explore()
  }

  func testHeadersOfAnotherCall() async throws {
    let explorer = InterceptorExplorer { _ in
      let shared = Mistakes.SharedHeaders()
      return Subject { _ in Mistakes.sharesHeaders(shared) }
    }
    try await self.expect("values stay in their call", explorer.calls(2))
    try await explorer.quiet().explore()
  }

  func testLeakedPermit() async throws {
    let explorer = InterceptorExplorer { _ in
      let permit = Mistakes.Permit()
      return Subject { _ in Mistakes.Limiter(permit: permit) }
    }
    try await self.expect("each call ends", explorer.calls(2))
  }

  func testTextOfAllowances() {
    XCTAssertEqual("\(ExplorationAllowance([.failure, .recovery]))", ".recovery, .failure")
    XCTAssertEqual("\(ExplorationAllowance())", "[]")
  }

  // MARK: Streams

  func testLostMessage() async throws {
    try await self.expect(
      "messages arrive as they were sent",
      InterceptorExplorer(of: { _ in Mistakes.losesLastMessage() }).methods([.clientStream])
    )
  }

  func testSwallowedLateError() async throws {
    try await self.expect(
      "errors are not swallowed",
      InterceptorExplorer(of: { _ in Mistakes.swallowsLateErrors() })
        .methods([.serverStream])
        .server(.answers(.ok, .messagesThenFailure(.unavailable)))
    )
  }

  func testHeldHeaders() async throws {
    try await self.expect(
      "each call ends",
      InterceptorExplorer(of: { _ in Mistakes.holdsHeaders() }).methods([.serverStream])
    )
  }
}
