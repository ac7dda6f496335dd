import ConnectTesting
import Synchronization
import XCTest

@testable import Connect

final class CallContextTests: XCTestCase {
  private enum TenantKey: CallContextKey { static let defaultValue = "none" }

  func testDeadlines() {
    let executor = VirtualExecutor()
    let deadline = CallDeadline(in: .seconds(3), clock: executor.clock)
    let same = CallDeadline(VirtualClock.Instant(offset: .seconds(3)), clock: executor.clock)
    executor.advance(by: .seconds(1))
    XCTAssertEqual(deadline.remaining, .seconds(2))
    XCTAssertEqual(same.remaining, .seconds(2))
    let later = CallDeadline(in: .seconds(3), clock: executor.clock)
    XCTAssertEqual(later.earlier(of: deadline).remaining, .seconds(2))
    XCTAssertEqual(deadline.earlier(of: later).remaining, .seconds(2))
    XCTAssertEqual(deadline.earlier(of: nil).remaining, .seconds(2))
    executor.advance(by: .seconds(3))
    XCTAssertEqual(deadline.remaining, .seconds(-1))
    XCTAssertGreaterThan(CallDeadline(in: .seconds(60)).remaining, .zero)
  }

  func testValuesOfATask() async {
    XCTAssertNil(CallContext.current)
    await CallContext.withValues {
      $0[TenantKey.self] = "acme"
    } operation: {
      XCTAssertEqual(CallContext.current?[TenantKey.self], "acme")
      await Task { XCTAssertEqual(CallContext.current?[TenantKey.self], "acme") }.value
      await CallContext.withValues {
        $0.deadline = CallDeadline(in: .seconds(60))
      } operation: {
        XCTAssertEqual(CallContext.current?[TenantKey.self], "acme")
        XCTAssertNotNil(CallContext.current?.deadline)
      }
      XCTAssertNil(CallContext.current?.deadline)
      CallContext.$current.withValue(nil) { XCTAssertNil(CallContext.current) }
    }
    XCTAssertNil(CallContext.current)
  }

  func testCallsInheritTheRequestIDUnlessTheyHaveOne() async {
    let transport = ScriptedTransport.echo()
    let seen = Mutex<[String?]>([])
    let client = ProtocolClient.scripted(
      transport,
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.call.requestFunction = { request in
            seen.withLock { $0.append(request.context.requestID) }
          }
        }
      ]
    )
    var options = CallOptions()
    _ = await client.unary(.unary, "x", options: options)
    await CallContext.withValues {
      $0.requestID = "outer"
    } operation: {
      _ = await client.unary(.unary, "x", options: options)
      options.context.requestID = "own"
      _ = await client.unary(.unary, "x", options: options)
    }
    _ = await client.unary(.unary, "x", options: options)
    XCTAssertEqual(seen.withLock { $0 }, [nil, "outer", "own", "own"])
  }

  func testADeadlineCanOnlyBecomeEarlier() async {
    let executor = VirtualExecutor()
    let remaining: (CallContext?) -> Duration? = { $0?.deadline?.remaining }
    await CallContext.withValues {
      $0.deadline = CallDeadline(in: .seconds(3), clock: executor.clock)
    } operation: {
      for (inner, expected) in [(1, 1), (5, 3)] {
        await CallContext.withValues {
          $0.deadline = CallDeadline(in: .seconds(inner), clock: executor.clock)
        } operation: {
          XCTAssertEqual(remaining(CallContext.current), .seconds(expected))
        }
      }
      await CallContext.withValues {
        $0.deadline = nil
      } operation: {
        XCTAssertEqual(remaining(CallContext.current), .seconds(3))
      }
    }
  }

  func testCancellingTheTaskCancelsTheContext() async {
    let found = Mutex<[CallCancellation]>([])
    let task = Task {
      await CallContext.withValues { _ in
      } operation: {
        await CallContext.withValues { _ in
        } operation: {
          let cancellation = CallContext.current?.cancellation
          found.withLock { $0 += [cancellation].compactMap { $0 } }
          while cancellation?.isCancelled == false { await Task.yield() }
        }
      }
    }
    while found.withLock({ $0.isEmpty }) { await Task.yield() }
    XCTAssertEqual(found.withLock { $0.map(\.isCancelled) }, [false])
    task.cancel()
    await task.value
    XCTAssertEqual(found.withLock { $0.map(\.isCancelled) }, [true])
  }

  /// Ending is no cancellation: what goes on afterwards goes on.
  func testEndingDoesNotCancel() async {
    let cancellation = await CallContext.withValues { _ in
    } operation: {
      CallContext.current?.cancellation
    }
    XCTAssertEqual(cancellation?.isCancelled, false)
  }
}
