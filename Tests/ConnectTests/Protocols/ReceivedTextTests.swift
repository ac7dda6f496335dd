import Connect
import ConnectTesting
import Logging
import NIOCore
import XCTest

/// Control characters that come in the body of a response, or percent-encoded: what callers see, and what the log says.
final class ReceivedTextTests: XCTestCase {
  private struct Handler: LogHandler {
    let events: Events
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    init(_ events: Events) { self.events = events }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { self.metadata[key] }
      set { self.metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      guard let mended = event.metadata?["mended"], let dropped = event.metadata?["dropped"] else { return }
      self.events.add(
        "\(event.level) \(event.metadata?["rpc.method"]?.description ?? "?") \(mended) \(dropped)"
      )
    }
  }

  private struct Outcome {
    var error: ConnectError?
    var trailers = Headers()
    var log: [String] = []
  }

  private func call(
    _ networkProtocol: NetworkProtocol,
    isUnary: Bool,
    _ script: @escaping ScriptedTransport.Script
  ) async -> Outcome {
    let log = Events()
    let client = ProtocolClient.scripted(ScriptedTransport(script)) {
      $0.networkProtocol = networkProtocol
      $0.logger = Logger(label: "test") { _ in Handler(log) }
    }
    var outcome = Outcome()
    if isUnary {
      let response = await client.unary(.unary, "x")
      (outcome.error, outcome.trailers) = (response.error, response.trailers)
    } else {
      for await result in client.serverStream(.serverStream, "x").results {
        if case .complete(_, let error, let trailers) = result {
          (outcome.error, outcome.trailers) = (error, trailers)
        }
      }
    }
    outcome.log = log.all
    return outcome
  }

  private static func frame(_ flags: UInt8, _ text: String) -> ByteBuffer {
    var frame = ByteBuffer(bytes: [flags])
    frame.writeInteger(UInt32(text.utf8.count))
    frame.writeString(text)
    return frame
  }

  func testEndOfAConnectStream() async {
    let end =
      #"{"metadata":{"x\r\ny":["1"],":status":["2"],"":["3"],"a b":["4"],"ok":["\u0000\u0007 x\u009b\t","  y "]}}"#
    let outcome = await self.call(.connect, isUnary: false) { stream in
      stream.respondStream()
      stream.send(Self.frame(2, end))
      stream.end()
    }
    XCTAssertNil(outcome.error)
    XCTAssertEqual(outcome.trailers, ["ok": ["\u{fffd}\u{fffd} x\u{fffd}", "y"]])
    XCTAssertEqual(outcome.log, ["debug /test.Text/ServerStream 1 4"])
  }

  func testErrorsOfConnect() async {
    let error = #"{"code":"aborted","message":"a\u0000b\n\tc\u001b[31m\u0085"}"#
    let expected = "a\u{fffd}b\n\tc\u{fffd}[31m\u{fffd}"
    let unary = await self.call(.connect, isUnary: true) { stream in
      stream.respond(status: 409, headers: ["content-type": ["application/json"]])
      stream.send(ByteBuffer(string: error))
      stream.end()
    }
    XCTAssertEqual(unary.error?.code, .aborted)
    XCTAssertEqual(unary.error?.message, expected)
    XCTAssertEqual(unary.log, ["debug /test.Text/Unary 1 0"])
    let stream = await self.call(.connect, isUnary: false) { stream in
      stream.respondStream()
      stream.send(Self.frame(2, "{\"error\":\(error)}"))
      stream.end()
    }
    XCTAssertEqual(stream.error?.message, expected)
    XCTAssertEqual(stream.log, ["debug /test.Text/ServerStream 1 0"])
    let status = await self.call(.connect, isUnary: false) { stream in
      stream.respond(status: 409, headers: ["content-type": ["application/json"]])
      stream.send(ByteBuffer(string: error))
      stream.end()
    }
    XCTAssertEqual(status.error?.message, expected)
    XCTAssertEqual(status.log, ["debug /test.Text/ServerStream 1 0"])
  }

  func testMessagesOfGRPC() async {
    let trailers: Headers = ["grpc-status": ["10"], "grpc-message": ["a%00b%0Ac%1B[31m%C2%85"]]
    let expected = "a\u{fffd}b\nc\u{fffd}[31m\u{fffd}"
    for isUnary in [true, false] {
      let grpc = await self.call(.grpc, isUnary: isUnary) { stream in
        stream.respond(headers: ["content-type": ["application/grpc+json"]])
        stream.end(trailers: trailers)
      }
      XCTAssertEqual(grpc.error?.code, .aborted)
      XCTAssertEqual(grpc.error?.message, expected)
      XCTAssertEqual(grpc.log.count, 1)
      let only = await self.call(.grpc, isUnary: isUnary) { stream in
        var headers: Headers = ["content-type": ["application/grpc+json"]]
        headers.append(contentsOf: trailers)
        stream.respond(headers: headers)
        stream.end()
      }
      XCTAssertEqual(only.error?.message, expected)
      XCTAssertEqual(only.log.count, 1)
    }
  }

  /// The full status has its message as it is, not percent-encoded.
  func testTheFullStatusOfGRPC() async {
    let status: [UInt8] = [8, 10, 18, 3] + Array("a\0b".utf8)
    var trailers: Headers = ["grpc-status": ["10"]]
    trailers.addBinary(name: "grpc-status-details-bin", value: ByteBuffer(bytes: status))
    trailers["grpc-status-details-bin"] = ["\(trailers.first("grpc-status-details-bin") ?? "") , AAAA"]
    let outcome = await self.call(.grpc, isUnary: true) { [trailers] stream in
      stream.respond(headers: ["content-type": ["application/grpc+json"]])
      stream.end(trailers: trailers)
    }
    XCTAssertEqual(outcome.error?.message, "a\u{fffd}b")
  }

  func testTrailersOfGRPCWeb() async {
    let block = "grpc-status:0 \r\nx y: 1\r\nä: 2\r\n\u{1}: 3\r\nok: a\u{7}b \r\n"
    for isUnary in [true, false] {
      let outcome = await self.call(.grpcWeb, isUnary: isUnary) { stream in
        stream.respond(headers: ["content-type": ["application/grpc-web+json"]])
        stream.send(Self.frame(0, "\"x\""))
        stream.send(Self.frame(0x80, block))
        stream.end()
      }
      XCTAssertNil(outcome.error)
      XCTAssertEqual(outcome.trailers, ["ok": ["a\u{fffd}b"]])
      XCTAssertEqual(outcome.log.map { $0.suffix(4) }, [" 1 3"])
    }
  }

  func testNothingIsSaidOfGoodResponses() async {
    for networkProtocol in [NetworkProtocol.connect, .grpc, .grpcWeb] {
      let outcome = await self.call(networkProtocol, isUnary: true) { $0.echo() }
      XCTAssertNil(outcome.error)
      XCTAssertEqual(outcome.log, [])
    }
  }
}
