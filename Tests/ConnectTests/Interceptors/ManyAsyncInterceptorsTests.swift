import Connect
import ConnectTesting
import Foundation
import XCTest

/// What a call costs grows with the number of its async interceptors, and not with the square of that number.
final class ManyAsyncInterceptorsTests: XCTestCase {
  private static let passing: InterceptorFactory = { _ in TestAsyncInterceptor() }

  /// How much more processor time a call needs with 1,000 interceptors than with 100: the least of some runs, since other
  /// processes on the machine only add to one of the two.
  private func growth(_ call: (_ count: Int) async -> Void) async -> Double {
    var least = Double.infinity
    for _ in 0..<6 {
      var times: [Double] = []
      for count in [100, 1000] {
        let start = Self.processorTime
        await call(count)
        times.append(Self.processorTime - start)
      }
      least = min(least, times[1] / times[0])
    }
    return least
  }

  private static var processorTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  private func client(_ count: Int, _ script: @escaping ScriptedTransport.Script) -> ProtocolClient {
    // Its tasks run on one thread, so that their switches do not count.
    let transport = ScriptedTransport(script, executor: VirtualExecutor())
    return .scripted(transport, interceptors: Array(repeating: Self.passing, count: count))
  }

  func testUnaryCalls() async {
    let growth = await self.growth { count in
      let response = await self.client(count) { $0.echo() }.unary(.unary, "x")
      XCTAssertEqual(response.message, "x")
    }
    XCTAssertLessThan(growth, 12)
  }

  func testStreams() async {
    let growth = await self.growth { count in
      let client = self.client(count) { stream in stream.onFinish = { $0.echo() } }
      let results = await client.results()
      XCTAssertEqual(results, ["headers", "a", "b", "end ok"])
    }
    XCTAssertLessThan(growth, 12)
  }
}
