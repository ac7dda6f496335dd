import Connect
import ConnectTesting
import NIOCore
import XCTest

final class ScriptedInterceptorTests: XCTestCase {
  private let executor = VirtualExecutor()
  private let unavailable = ConnectError(code: .unavailable, message: "try later")

  private static let levels: [ScriptedInterceptor.Level] = [.message, .byte]

  private func unary(
    _ interceptors: [InterceptorFactory],
    errors: [Code] = [],
    timeout: Duration? = nil
  ) async throws -> (response: ResponseMessage<Note>, attempts: Int) {
    let transport = NoteTransport(self.executor, errors: errors)
    let client = transport.client(interceptors, timeout: timeout)
    let response = try await self.executor.lettingTimePass { await client.unary(Note.post, Note("hi")) }
    return (response, transport.attempts.count)
  }

  private func chat(
    _ interceptors: [InterceptorFactory],
    errors: [Code] = [],
    timeout: Duration? = nil
  ) async throws -> (results: String, attempts: Int) {
    let transport = NoteTransport(self.executor, errors: errors)
    let client = transport.client(interceptors, timeout: timeout)
    let results = try await self.executor.lettingTimePass {
      let stream = client.bidirectionalStream(Note.chat)
      // A call that has failed takes no message; its results say why.
      try? await stream.send(Note("hi"))
      stream.finish()
      var results: [String] = []
      for await result in stream.results {
        switch result {
        case .headers: results.append("headers")
        case .message(let message): results.append(message.text)
        case .complete(let code, _, _): results.append("end \(code)")
        }
      }
      return results.joined(separator: ", ")
    }
    return (results, transport.attempts.count)
  }

  func testFail() async throws {
    for level in Self.levels {
      let factory = ScriptedInterceptor.factory(.fail(self.unavailable), level: level)
      let unary = try await self.unary([factory])
      XCTAssertEqual(unary.response.error?.message, "try later")
      XCTAssertEqual(unary.attempts, 0)
      let stream = try await self.chat([factory])
      XCTAssertEqual(stream.results, "end unavailable")
      XCTAssertEqual(stream.attempts, 0)
    }
  }

  func testFailTheFirstAttemptsAndRetry() async throws {
    for level in Self.levels {
      let factories = [
        ScriptedInterceptor.factory(.retry(2, after: .seconds(1)), level: level),
        ScriptedInterceptor.factory(.fail(self.unavailable, attempts: 2), level: level),
      ]
      let start = self.executor.now
      let unary = try await self.unary(factories)
      XCTAssertEqual(unary.response.message, Note("hi"))
      XCTAssertEqual(unary.attempts, 1)
      XCTAssertEqual(self.executor.now - start, .seconds(2))
      let stream = try await self.chat(factories)
      XCTAssertEqual(stream.results, "headers, hi, end ok")
      XCTAssertEqual(self.executor.now - start, .seconds(4))
    }
  }

  func testRetryIsBoundedAndChoosesErrors() async throws {
    let failing: [Code] = [.unavailable, .unavailable, .unavailable]
    let once = try await self.unary([ScriptedInterceptor.factory(.retry(1))], errors: failing)
    XCTAssertEqual(once.response.code, .unavailable)
    XCTAssertEqual(once.attempts, 2)
    let others = ScriptedInterceptor.factory(.retry(3, when: { $0.code == .aborted }))
    let never = try await self.unary([others], errors: failing)
    XCTAssertEqual(never.attempts, 1)
    // Headers have gone out by then, so the call refuses it.
    let stream = try await self.chat([ScriptedInterceptor.factory(.retry(1))], errors: [.unavailable])
    XCTAssertEqual(stream.results, "headers, end unavailable")
    XCTAssertEqual(stream.attempts, 1)
  }

  func testAnswer() async throws {
    let unary = try await self.unary([ScriptedInterceptor.factory(.answer([Note("cached")]))])
    XCTAssertEqual(unary.response.message, Note("cached"))
    XCTAssertEqual(unary.attempts, 0)
    let bytes = ByteBuffer(string: #"{"text":"cached"}"#)
    let encoded = try await self.unary([ScriptedInterceptor.factory(.answer([bytes]), level: .byte)])
    XCTAssertEqual(encoded.response.message, Note("cached"))
    let stream = try await self.chat([ScriptedInterceptor.factory(.answer([Note("a"), Note("b")]))])
    XCTAssertEqual(stream.results, "headers, a, b, end ok")
    XCTAssertEqual(stream.attempts, 0)
    let encodedStream = try await self.chat([ScriptedInterceptor.factory(.answer([bytes]), level: .byte)])
    XCTAssertEqual(encodedStream.results, "headers, cached, end ok")
    let empty = try await self.chat([ScriptedInterceptor.factory(.answer([]))])
    XCTAssertEqual(empty.results, "headers, end ok")
  }

  func testAnswerThatCannotBeIsAnError() async throws {
    let wrong = try await self.unary([ScriptedInterceptor.factory(.answer(["text"]))])
    XCTAssertEqual(wrong.response.code, .internalError)
    XCTAssertEqual(
      wrong.response.error?.message,
      "a scripted interceptor was to answer with String where Note is due"
    )
    let none = try await self.unary([ScriptedInterceptor.factory(.answer([]))])
    XCTAssertEqual(none.response.error?.message, "a scripted interceptor has no message to answer with")
    let stream = try await self.chat([ScriptedInterceptor.factory(.answer([1]))])
    XCTAssertEqual(stream.results, "end internal")
  }

  func testDelayCountsAgainstTheDeadline() async throws {
    for direction in [ScriptedInterceptor.Direction.request, .response] {
      let factory = ScriptedInterceptor.factory(.delay(.seconds(5), at: direction, on: self.executor))
      let start = self.executor.now
      let inTime = try await self.unary([factory], timeout: .seconds(6))
      XCTAssertEqual(inTime.response.message, Note("hi"))
      XCTAssertEqual(self.executor.now - start, .seconds(5))
      let late = try await self.unary([factory], timeout: .seconds(4))
      XCTAssertEqual(late.response.code, .deadlineExceeded)
      XCTAssertEqual(self.executor.now - start, .seconds(9))
      let stream = try await self.chat([factory], timeout: .seconds(60))
      XCTAssertEqual(stream.results, "headers, hi, end ok")
    }
  }

  func testMapErrors() async throws {
    for level in Self.levels {
      let factory = ScriptedInterceptor.factory(
        .mapErrors { ConnectError(code: .dataLoss, message: "was \($0.code)") },
        level: level
      )
      let unary = try await self.unary([factory], errors: [.notFound])
      XCTAssertEqual(unary.response.code, .dataLoss)
      XCTAssertEqual(unary.response.error?.message, "was not_found")
      let fine = try await self.unary([factory])
      XCTAssertEqual(fine.response.message, Note("hi"))
      let stream = try await self.chat([factory], errors: [.notFound])
      XCTAssertEqual(stream.results, "headers, end data_loss")
    }
  }

  func testNeverProceedEndsWithTheDeadline() async throws {
    for direction in [ScriptedInterceptor.Direction.request, .response] {
      let factory = ScriptedInterceptor.factory(.neverProceed(at: direction))
      let unary = try await self.unary([factory], timeout: .seconds(4))
      XCTAssertEqual(unary.response.code, .deadlineExceeded)
      XCTAssertEqual(unary.attempts, direction == .request ? 0 : 1)
      let stream = try await self.chat([factory], timeout: .seconds(4))
      XCTAssertEqual(stream.results, "end deadline_exceeded")
    }
  }

  func testProceedTwiceHasNoEffectOnACallAndIsFoundByTheDriver() async throws {
    for direction in [ScriptedInterceptor.Direction.request, .response] {
      let factory = ScriptedInterceptor.factory(.proceedTwice(at: direction))
      let unary = try await self.unary([factory])
      XCTAssertEqual(unary.response.message, Note("hi"))
      XCTAssertEqual(unary.attempts, 1)
      let stream = try await self.chat([factory])
      XCTAssertEqual(stream.results, "headers, hi, end ok")
    }
    let driver = InterceptorDriver(ScriptedInterceptor.factory(.proceedTwice(), level: .byte))
    do {
      _ = try await driver.unary.request(driver.makeRequest(message: ByteBuffer())).outcome
      XCTFail("no error")
    } catch {
      XCTAssertEqual((error as? HookMisuse)?.kind, .proceededTwice)
    }
  }
}
