import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Code of users that comes back into the call while the pipeline moves: hooks, codecs, and messages that go away.
final class PipelineReentryTests: XCTestCase {
  /// ``JSONCodec``, which does something first.
  private struct HookedCodec: Codec {
    var onEncode: @Sendable () -> Void = {}
    var onDecode: @Sendable () -> Void = {}

    var name: String { "json" }

    func encode<Message: Sendable>(
      _ message: Message,
      as coding: MessageCoding<Message>,
      deterministic: Bool
    ) throws -> ByteBuffer {
      self.onEncode()
      return try JSONCodec().encode(message, as: coding, deterministic: deterministic)
    }

    func decode<Message: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<Message>) throws -> Message {
      self.onDecode()
      return try JSONCodec().decode(bytes, as: coding)
    }
  }

  /// Options with which a call can be cancelled from inside of it.
  private static func cancellable() -> (CallOptions, CallCancellation) {
    let cancellation = CallCancellation()
    var options = CallOptions()
    options.context.cancellation = cancellation
    return (options, cancellation)
  }

  /// Passes everything on, at both levels.
  private static let passing = TestInterceptor.make { interceptor in
    interceptor.unaryMessages.responseFunction = { $1($0) }
    interceptor.streamMessages.streamResultFunction = { $1($0) }
    interceptor.unaryBytes.responseFunction = { $1($0) }
    interceptor.streamBytes.streamResultFunction = { $1($0) }
  }

  /// Passes everything on that is a message.
  private static let passingMessages = TestInterceptor.make { interceptor in
    interceptor.unaryMessages.responseFunction = { $1($0) }
    interceptor.streamMessages.streamResultFunction = { $1($0) }
  }

  private static let greeting: ScriptedTransport.Script = { stream in
    stream.onFinish = { stream in
      stream.respondStream()
      stream.sendMessage("\"x\"")
      stream.endStream()
    }
  }

  // MARK: Request hooks

  /// Nothing was sent if a hook that has the request, and has not returned, ends the call.
  func testARequestHookThatCancelsItsCall() async {
    for isMessage in [false, true] {
      for proceedsFirst in [false, true] {
        let (options, cancellation) = Self.cancellable()
        let seen = Events()
        let outer = TestInterceptor.make { interceptor in
          interceptor.unaryMessages.responseFunction = { response, proceed in
            if let error = response.error { seen.add("\(error.code) \(error.isUnsent) \(proceed.isOver)") }
            proceed(response)
          }
        }
        let cancelling = TestInterceptor.make { interceptor in
          if isMessage {
            interceptor.unaryMessages.requestFunction = { request, proceed in
              if proceedsFirst { proceed(.success(request)) }
              cancellation.cancel()
              if !proceedsFirst { proceed(.success(request)) }
            }
          } else {
            interceptor.unaryBytes.requestFunction = { request, proceed in
              if proceedsFirst { proceed(.success(request)) }
              cancellation.cancel()
              if !proceedsFirst { proceed(.success(request)) }
            }
          }
        }
        let transport = ScriptedTransport.echo()
        let client = ProtocolClient.scripted(transport, interceptors: [outer, cancelling])
        let response = await client.unary(.unary, "x", options: options)
        let what = "message \(isMessage), proceeds first \(proceedsFirst)"
        XCTAssertEqual(response.error?.code, .canceled, what)
        XCTAssertEqual(response.error?.isUnsent, true, what)
        XCTAssertEqual(seen.all, ["canceled true true"], what)
        XCTAssertEqual(transport.streams.count, 0, what)
      }
    }
  }

  /// The same of a stream's head.
  func testAStreamsRequestHookThatCancelsItsCall() async {
    for isMessage in [false, true] {
      let (options, cancellation) = Self.cancellable()
      let cancelling = TestInterceptor.make { interceptor in
        if isMessage {
          interceptor.streamMessages.requestFunction = { request, proceed in
            cancellation.cancel()
            proceed(.success(request))
          }
        } else {
          interceptor.streamBytes.requestFunction = { request, proceed in
            cancellation.cancel()
            proceed(.success(request))
          }
        }
      }
      let transport = ScriptedTransport.silent()
      let client = ProtocolClient.scripted(transport, interceptors: [Self.passing, cancelling])
      var end: ConnectError?
      for await result in client.serverStream(.serverStream, "x", options: options).results {
        if case .complete(_, let error, _) = result { end = error }
      }
      XCTAssertEqual(end?.code, .canceled)
      XCTAssertEqual(end?.isUnsent, true)
      XCTAssertEqual(transport.streams.count, 0)
    }
  }

  // MARK: Codecs

  /// The call is over when the codec returns: the message goes nowhere.
  func testACodecThatCancelsItsCall() async {
    for interceptors in [
      [], [Self.passingMessages], [Self.passingMessages, Self.passingMessages], [Self.passing],
    ] {
      for isEncoding in [false, true] {
        let what = "\(interceptors.count) interceptors, encoding \(isEncoding)"
        let (options, cancellation) = Self.cancellable()
        let codec =
          isEncoding
          ? HookedCodec(onEncode: { cancellation.cancel() })
          : HookedCodec(onDecode: { cancellation.cancel() })
        let unary = ProtocolClient.scripted(.echo(), interceptors: interceptors) { $0.codec = codec }
        let response = await unary.unary(.unary, "x", options: options)
        XCTAssertEqual(response.error?.code, .canceled, what)

        let (streamOptions, streamCancellation) = Self.cancellable()
        let streamCodec =
          isEncoding
          ? HookedCodec(onEncode: { streamCancellation.cancel() })
          : HookedCodec(onDecode: { streamCancellation.cancel() })
        let streams = ProtocolClient.scripted(ScriptedTransport(Self.greeting), interceptors: interceptors) {
          $0.codec = streamCodec
        }
        var results: [String] = []
        for await result in streams.serverStream(.serverStream, "x", options: streamOptions).results {
          results.append(result.short)
        }
        XCTAssertEqual(results, isEncoding ? ["end canceled"] : ["headers", "end canceled"], what)
      }
    }
  }

  // MARK: Cancelling a next

  /// A hook inside cancels the task that waits in `next`, and asks for another attempt, which begins outside of that
  /// interceptor: the cancelled `next` does not end the new attempt.
  func testAHookThatCancelsANextAndRetries() {
    for delay in [Duration.zero, .seconds(1)] {
      let executor = VirtualExecutor()
      let transport = ScriptedTransport(
        { [count = Box(0)] stream in
          if count.increment() == 1 { stream.reply(.unavailable) } else { stream.reply(stream.sentMessage) }
        },
        executor: executor
      )
      let waiting = Box<Task<ResponseMessage<Text>, any Error>?>(nil)
      let outer = TestAsyncInterceptor.unary { request, next in
        let task = Task(executorPreference: executor) { try await next(request) }
        waiting.value = task
        return try await task.value
      }
      let retrying = TestInterceptor.make { interceptor in
        interceptor.unaryMessages.responseFunction = { response, proceed in
          guard response.error != nil, !proceed.isOver else { return proceed(response) }
          waiting.value?.cancel()
          proceed.retry(after: delay)
        }
      }
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [outer, retrying],
        timeout: .seconds(100)
      )
      let (_, outcome) = client.outcome(of: "x")
      executor.runUntilIdle()
      executor.advance(by: .seconds(2))
      XCTAssertEqual(outcome.count, 1, "after \(delay)")
      XCTAssertEqual(transport.streams.count, 2, "after \(delay)")
      executor.advance(by: .seconds(200))
    }
  }

  /// The same of a stream.
  func testAHookThatCancelsTheReaderOfANextAndRetries() {
    for delay in [Duration.zero, .seconds(1)] {
      let executor = VirtualExecutor()
      let transport = ScriptedTransport(Self.greeting, executor: executor)
      let waiting = Box<Task<[StreamResult<Text>], any Error>?>(nil)
      let outer = TestAsyncInterceptor.stream { request, next in
        let response = try await next(request)
        let task = Task(executorPreference: executor) {
          var results: [StreamResult<Text>] = []
          for try await result in response.results { results.append(result) }
          return results
        }
        waiting.value = task
        return StreamResponse(results: PulledSequence(try await task.value))
      }
      let attempts = Box(0)
      let retrying = TestInterceptor.make { interceptor in
        interceptor.streamMessages.streamResultFunction = { result, proceed in
          guard case .headers = result, attempts.increment() == 1 else { return proceed(result) }
          waiting.value?.cancel()
          proceed.retry(after: delay)
        }
      }
      let client = ProtocolClient.scripted(
        transport,
        interceptors: [outer, retrying],
        timeout: .seconds(100)
      )
      let received = Events()
      let handle = client.bidirectionalStream(.bidirectional) { received.add($0.short) }
      handle.finish()
      executor.runUntilIdle()
      executor.advance(by: .seconds(2))
      XCTAssertEqual(received.all, ["headers", "x", "end ok"], "after \(delay)")
      XCTAssertEqual(transport.streams.count, 2, "after \(delay)")
      executor.advance(by: .seconds(200))
    }
  }

  // MARK: An earlier part's proceed

  /// A hook that ends the stream, or the attempt, with the `proceed` of an earlier result is not given later ones.
  func testAHookThatUsesAnEarlierProceedSeesNoMoreOfTheAttempt() {
    for retries in [false, true] {
      let seen = Events()
      let headers = Box<StreamMessageFunction<Text, Text>.ResultProceed?>(nil)
      let hook = TestInterceptor.make { interceptor in
        interceptor.streamMessages.streamResultFunction = { result, proceed in
          guard !proceed.isOver else { return }
          seen.add(result.short)
          switch result {
          case .headers where seen.count("headers") == 1:
            headers.value = proceed
          case .message("a"):
            if retries {
              headers.exchange(nil)?.retry()
            } else {
              headers.exchange(nil)?(.complete(code: .aborted, error: nil, trailers: Headers()))
            }
            proceed.drop()
          default:
            proceed(result)
          }
        }
      }
      let stream = SteppedStream(interceptors: [hook], demand: 0)
      stream.server { $0.respondStream() }
      stream.reply("a", "b", "c")
      stream.request(10)
      if retries {
        stream.server { $0.respondStream() }
        stream.reply("d")
        stream.server { $0.endStream() }
        stream.assertEnded(["headers", "d", "end ok"])
        XCTAssertEqual(seen.all, ["headers", "a", "headers", "d", "end ok"])
      } else {
        stream.assertEnded(["end aborted"])
        XCTAssertEqual(seen.all, ["headers", "a"])
      }
    }
  }
}
