import Connect
import ConnectTesting
import XCTest

/// The end of a stream while a hook waits to start another attempt.
final class StreamRetryDelayTests: XCTestCase {
  /// Hooks outside of the one that retries still wait for a result, and are told of the end, whatever stands around them.
  func testHooksOutsideAreToldOfTheEnd() {
    let passing = TestAsyncInterceptor.stream { request, next in try await next(request) }
    let retrying = TestInterceptor.make { interceptor in
      interceptor.streamMessages.streamResultFunction = { result, proceed in
        if result.short == "end aborted" { proceed.retry(after: .seconds(1)) } else { proceed(result) }
      }
    }
    for places in [["A", "B"], ["async", "A", "B"], ["A", "async", "B"], ["A", "B", "async"]] {
      let events = Events()
      let interceptors = places.map { place in
        place == "async"
          ? passing
          : TestInterceptor.make { interceptor in
            interceptor.streamMessages = StreamMessageFunction(
              requestFunction: { request, proceed in
                events.add("\(place) head")
                proceed(.success(request))
              },
              streamResultFunction: { result, proceed in
                events.add("\(place) \(result.short)")
                proceed(result)
              }
            )
          }
      }
      let stream = SteppedStream(interceptors: interceptors + [retrying])
      stream.server { $0.fail(ConnectError(code: .aborted)) }
      XCTAssertEqual(stream.executor.scheduled, [.seconds(1)])
      stream.cancel()
      XCTAssertEqual(events.all, ["A head", "B head", "B end canceled", "A end canceled"], "\(places)")
      stream.assertEnded(["end canceled"])
    }
  }
}
