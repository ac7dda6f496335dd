import Connect
import ConnectTesting
import XCTest

/// Whether an error says that nothing was sent, and hooks that are only told of the end.
final class UnsentErrorTests: XCTestCase {
  /// What the outer of two interceptors sees: whether the error was unsent, and whether the call was over.
  private struct Seen: Equatable {
    var code: Code
    var isUnsent: Bool
    var isOver: Bool
  }

  private enum Inner {
    case passes, fails, waits
  }

  private func run(_ inner: Inner, answers: Bool, isStream: Bool) async -> [Seen] {
    let seen = Observed<[Seen]>([])
    let transport = answers ? ScriptedTransport { $0.fail(ConnectError(code: .unavailable)) } : .silent()
    let outer = TestInterceptor.make { interceptor in
      interceptor.unaryBytes.responseFunction = { response, proceed in
        guard let error = response.error else { return proceed(response) }
        seen.update { $0.append(Seen(code: error.code, isUnsent: error.isUnsent, isOver: proceed.isOver)) }
        proceed(response)
      }
      interceptor.streamBytes.streamResultFunction = { result, proceed in
        if case .complete(_, let error?, _) = result {
          seen.update { $0.append(Seen(code: error.code, isUnsent: error.isUnsent, isOver: proceed.isOver)) }
        }
        proceed(result)
      }
    }
    let keeping = Observed<[any Sendable]>([])
    let stopping = TestInterceptor.make { interceptor in
      guard inner != .passes else { return }
      interceptor.unaryBytes.requestFunction = { _, proceed in
        if inner == .fails {
          proceed(.failure(ConnectError(code: .aborted)))
        } else {
          keeping.update { $0.append(proceed) }
        }
      }
      interceptor.streamBytes.requestFunction = { _, proceed in
        if inner == .fails {
          proceed(.failure(ConnectError(code: .aborted)))
        } else {
          keeping.update { $0.append(proceed) }
        }
      }
    }
    let client = ProtocolClient.scripted(transport, interceptors: [outer, stopping], timeout: .seconds(1))
    if isStream {
      let call = Task { try? await client.serverStream(.serverStream, "x").results.collected() }
      try? await transport.virtualExecutor.wait {
        transport.virtualExecutor.runUntilIdle()
        let endsByItself = !answers && inner != .fails
        return endsByItself ? !transport.virtualExecutor.scheduled.isEmpty : !seen.value.isEmpty
      }
      transport.virtualExecutor.advance(by: .seconds(1))
      _ = await call.value
    } else {
      _ = client.outcome(of: "x")
      transport.virtualExecutor.runUntilIdle()
      transport.virtualExecutor.advance(by: .seconds(1))
    }
    return seen.value
  }

  func testWhatWasSent() async {
    for isStream in [false, true] {
      let failed = await self.run(.passes, answers: true, isStream: isStream)
      XCTAssertEqual(failed, [Seen(code: .unavailable, isUnsent: false, isOver: false)], "\(isStream)")
      let refused = await self.run(.fails, answers: true, isStream: isStream)
      XCTAssertEqual(refused, [Seen(code: .aborted, isUnsent: true, isOver: false)], "\(isStream)")
      let late = await self.run(.passes, answers: false, isStream: isStream)
      XCTAssertEqual(late, [Seen(code: .deadlineExceeded, isUnsent: false, isOver: true)], "\(isStream)")
      let held = await self.run(.waits, answers: false, isStream: isStream)
      XCTAssertEqual(held, [Seen(code: .deadlineExceeded, isUnsent: true, isOver: true)], "\(isStream)")
    }
  }
}
