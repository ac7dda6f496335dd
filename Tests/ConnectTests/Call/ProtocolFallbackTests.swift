import Connect
import ConnectTesting
import NIOCore
import XCTest

/// The rules by which a client that may choose its protocol goes on to the next one.
final class ProtocolFallbackTests: XCTestCase {
  // MARK: The same call in the next protocol

  func testAnotherVersionOfHTTPIsUnseenByInterceptors() async {
    let probe = InterceptorProbe()
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let client = peer.client(interceptors: [probe.factory("A")])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web"])
    XCTAssertEqual(
      probe.events.outline,
      ["A message request", "A byte request", "A byte response ok", "A message response ok"]
    )
    // What got through is remembered, by all calls of the client.
    let stream = await client.results()
    XCTAssertEqual(stream, ["headers", "a", "b", "end ok"])
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web", "grpc-web"])
  }

  func testEachStatusThatRefusesAProtocol() async {
    for status in [415, 426, 505] {
      let peer = ProtocolPeer(["grpc": .status(status), "grpc-web": .status(status, "text/html")])
      let client = peer.client()
      for _ in 0..<2 {
        let response = await client.unary(.unary, "x")
        XCTAssertEqual(response.message, "x", "\(status)")
      }
      XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web", "connect", "connect"], "\(status)")
      XCTAssertEqual(peer.processed.count("connect"), 2, "\(status)")
    }
  }

  /// Such a server refuses the codec, for example.
  func testARefusalInTheProtocolItselfIsFinal() async {
    let peer = ProtocolPeer(["grpc": .status(415, "application/grpc")])
    let client = peer.client()
    for _ in 0..<2 {
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.error?.httpStatus, 415)
    }
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc"])
  }

  func testStreamsOfEachKind() async throws {
    for answer in [ProtocolPeer.Answer.otherVersion, .status(415)] {
      let peer = ProtocolPeer(["grpc": answer])
      let bidirectional = await peer.client().results()
      XCTAssertEqual(bidirectional, ["headers", "a", "b", "end ok"])
      var messages: [String] = []
      for await result in peer.client().serverStream(.serverStream, "c").results {
        messages.append(result.short)
      }
      XCTAssertEqual(messages, ["headers", "c", "end ok"])
      let stream = peer.client().clientStream(.clientStream)
      try await stream.send("d")
      let response = await stream.closeAndReceive()
      XCTAssertEqual(response.message, "d")
      XCTAssertEqual(peer.seen.all, Array(repeating: ["grpc", "grpc-web"], count: 3).flatMap { $0 })
      XCTAssertEqual(peer.processed.count("grpc-web"), 3)
    }
  }

  /// Messages that are sent while the first protocol fails, and after that, come in their order.
  func testMessagesAroundTheChange() {
    let peer = ProtocolPeer()
    let stream = SteppedStream(
      script: { stream in
        stream.isWritable = true
        if stream.protocolName != "grpc" { peer.serve(stream) }
      },
      configure: { $0.networkProtocol = .automatic() }
    )
    stream.send("a", "b")
    stream.server { $0.fail(ConnectError(code: .unavailable), isVersionMismatch: true) }
    XCTAssertEqual(stream.attempts.map(\.protocolName), ["grpc", "grpc-web"])
    stream.send("c")
    stream.finish()
    XCTAssertEqual(stream.written, ["a", "b", "c"])
    stream.assertEnded(["headers", "a", "b", "c", "end ok"])
    XCTAssertEqual(stream.answers, ["a sent", "b sent", "c sent"])
  }

  func testACompressedRequestIsCompressedAgain() async {
    let peer = ProtocolPeer(["grpc": .otherVersion, "grpc-web": .status(415)])
    let transport = peer.transport
    let client = peer.client(transport) { $0.compression.minimumRequestBytes = 0 }
    let options = CallOptions(
      headers: ["x-a": ["1"]],
      timeout: .seconds(5),
      requestCompression: .pool(GzipCompressionPool())
    )
    _ = await client.unary(.unary, "x", options: options)
    let requests = transport.streams.map(\.request.headers)
    XCTAssertEqual(
      requests.map { $0["content-type"] },
      [
        ["application/grpc+json"], ["application/grpc-web+json"], ["application/json"],
      ]
    )
    XCTAssertEqual(requests.map { $0["grpc-encoding"] }, [["gzip"], ["gzip"], []])
    XCTAssertEqual(requests[2]["content-encoding"], ["gzip"])
    XCTAssertEqual(requests.map { $0["x-a"] }, [["1"], ["1"], ["1"]])
    XCTAssertEqual(requests.map { $0.contains("grpc-timeout") }, [true, true, false])
    XCTAssertTrue(requests[2].contains("connect-timeout-ms"))
  }

  func testMetricsHooksSeeOneAttempt() async {
    let probe = InterceptorProbe()
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let outcomes = Events()
    let client = peer.client(interceptors: [
      probe.factory("A", levels: [], metrics: true),
      TestInterceptor.make { interceptor in
        interceptor.call = CallFunction(outcomeFunction: { outcomes.add("\($0.attempts)") })
      },
    ])
    _ = await client.unary(.unary, "x")
    XCTAssertEqual(probe.events.count, 1)
    XCTAssertEqual(outcomes.all, ["1"])
  }

  // MARK: The error passes, later calls use the next protocol

  func testMissingTrailers() async {
    let peer = ProtocolPeer(["grpc": .withoutTrailers])
    let client = peer.client()
    let first = await client.unary(.unary, "x")
    XCTAssertEqual(first.code, .internalError)
    XCTAssertEqual(
      first.error?.message,
      """
      response ended without a grpc-status; proxies that drop trailers do this; for these, set networkProtocol to .grpcWeb \
      (POST http://scripted.test/test.Text/Unary)
      """
    )
    let second = await client.unary(.unary, "y")
    XCTAssertEqual(second.message, "y")
    XCTAssertEqual(peer.processed.all, ["grpc", "grpc-web"])
  }

  func testARetryOfAnInterceptorUsesTheNextProtocol() async {
    let peer = ProtocolPeer(["grpc": .withoutTrailers])
    let client = peer.client(interceptors: [
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes.responseFunction = { response, proceed in
          if response.error != nil { proceed.retry() } else { proceed(response) }
        }
      }
    ])
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web"])
  }

  func testAStreamThatCannotBeSentAgain() async {
    let peer = ProtocolPeer(["grpc": .status(415)])
    let client = peer.client()
    let large = Text(String(repeating: "x", count: 40_000))
    let first = await client.results(sending: [large, large])
    XCTAssertEqual(first, ["headers", "end unknown"])
    XCTAssertEqual(peer.seen.all, ["grpc"])
    let second = await client.results(sending: [large, large])
    XCTAssertEqual(second.last, "end ok")
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web"])
  }

  // MARK: What says nothing about the protocol

  func testOtherFailures() async {
    for answer in [
      ProtocolPeer.Answer.lost, .status(503, "text/html"), .status(404), .error(.unavailable),
      .error(.internalError),
    ] {
      let peer = ProtocolPeer(["grpc": answer])
      let client = peer.client()
      for _ in 0..<2 {
        let response = await client.unary(.unary, "x")
        XCTAssertNotEqual(response.code, .ok, "\(answer)")
        XCTAssertFalse(response.error?.message?.contains("tried before") == true, "\(answer)")
      }
      XCTAssertEqual(peer.seen.all, ["grpc", "grpc"], "\(answer)")
    }
  }

  func testARefusedStreamIsSentAgainInTheSameProtocol() async {
    let peer = ProtocolPeer(["grpc": .refused])
    let response = await peer.client().unary(.unary, "x")
    XCTAssertEqual(response.error?.message, "refused")
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc"])
  }

  func testAContentTypeOfAnInterceptorsOwn() async {
    let peer = ProtocolPeer(["grpc": .status(415)])
    let client = peer.client(interceptors: [
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes = UnaryFunction(updateRequest: { $0.contentType = "application/grpc+own" })
      }
    ])
    for _ in 0..<2 {
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.error?.httpStatus, 415)
    }
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc"])
  }

  func testAClientWithOneProtocolStaysWithIt() async {
    for networkProtocol in [NetworkProtocol.grpc, .automatic([.grpc]), .automatic([.grpc, .grpc])] {
      let peer = ProtocolPeer(["grpc": .status(415)])
      let client = peer.client { $0.networkProtocol = networkProtocol }
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.error?.httpStatus, 415)
      XCTAssertEqual(peer.seen.all, ["grpc"])
    }
  }

  // MARK: Nothing gets through

  func testTheErrorNamesAllThatWasTried() async {
    let peer = ProtocolPeer(["grpc": .otherVersion, "grpc-web": .status(415), "connect": .status(505)])
    let client = peer.client()
    for _ in 0..<2 {
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .unknown)
      XCTAssertEqual(response.error?.httpStatus, 505)
      let message = response.error?.message ?? ""
      XCTAssertTrue(message.hasPrefix("connect: HTTP status 505 HTTP Version Not Supported; "), message)
      XCTAssertTrue(
        message.hasSuffix(
          "; tried before: grpc: no grpc here; grpc-web: HTTP status 415 Unsupported Media Type"
        ),
        message
      )
    }
    // Nothing is remembered then, and no call tries a protocol twice.
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web", "connect", "grpc", "grpc-web", "connect"])
    XCTAssertEqual(peer.processed.all, [])
  }

  func testARetryDoesNotTryAllOfThemAgain() async {
    let peer = ProtocolPeer(["grpc": .otherVersion, "grpc-web": .status(415), "connect": .status(505)])
    let client = peer.client(interceptors: [
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes.responseFunction = { response, proceed in proceed.retry() }
      }
    ])
    let response = await client.unary(.unary, "x")
    XCTAssertNotEqual(response.code, .ok)
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web", "connect", "connect", "connect", "connect"])
  }

  func testAFailureInTheNextProtocolSaysWhatWasTried() async {
    let peer = ProtocolPeer(["grpc": .otherVersion, "grpc-web": .status(404)])
    let client = peer.client()
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.code, .unimplemented)
    let message = response.error?.message ?? ""
    XCTAssertTrue(message.hasPrefix("grpc-web: HTTP status 404 Not Found"), message)
    XCTAssertTrue(message.hasSuffix("; tried before: grpc: no grpc here"), message)
    // An error of the server's own is left as it is.
    peer.set("grpc-web", .error(.notFound))
    let own = await client.unary(.unary, "x")
    XCTAssertEqual(own.code, .notFound)
    XCTAssertNil(own.error?.message)
  }

  func testNoChoice() async {
    let peer = ProtocolPeer()
    let client = peer.client { $0.networkProtocol = .automatic([]) }
    let response = await client.unary(.unary, "x")
    XCTAssertEqual(response.code, .invalidArgument)
    XCTAssertEqual(
      response.error?.message,
      "networkProtocol is .automatic without choices: name at least one protocol, or use .automatic()"
    )
    XCTAssertEqual(peer.seen.all, [])
  }

  // MARK: What is remembered

  func testARememberedProtocolThatStopsGettingThrough() async {
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let client = peer.client()
    _ = await client.unary(.unary, "x")
    peer.set("grpc-web", .status(415))
    let second = await client.unary(.unary, "y")
    XCTAssertEqual(second.message, "y")
    peer.set("grpc", .echo)
    peer.set("connect", .otherVersion)
    let third = await client.unary(.unary, "z")
    XCTAssertEqual(third.message, "z")
    _ = await client.unary(.unary, "z")
    XCTAssertEqual(
      peer.seen.all,
      ["grpc", "grpc-web", "grpc-web", "connect", "connect", "grpc", "grpc"]
    )
  }

  /// An error that is not the protocol's does not show that the protocol gets through.
  func testOnlyAnAnswerInTheProtocolIsRemembered() async {
    let peer = ProtocolPeer(["grpc": .otherVersion, "grpc-web": .status(503, "text/html")])
    let client = peer.client()
    for _ in 0..<2 {
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.code, .unavailable)
    }
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web", "grpc", "grpc-web"])
    peer.set("grpc-web", .error(.unavailable))
    for _ in 0..<2 { _ = await client.unary(.unary, "x") }
    XCTAssertEqual(peer.seen.all.suffix(3), ["grpc", "grpc-web", "grpc-web"])
  }

  func testEachOriginIsRememberedByItself() async {
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let client = peer.client(interceptors: [
      TestInterceptor.make { interceptor in
        interceptor.unaryBytes = UnaryFunction(updateRequest: { request in
          if let host = request.headers.first("x-host") { request.url.origin.host = host }
        })
      }
    ])
    let elsewhere = CallOptions(headers: ["x-host": ["other.test"]])
    for _ in 0..<2 { _ = await client.unary(.unary, "x", options: elsewhere) }
    XCTAssertEqual(peer.seen.all, ["grpc", "grpc-web", "grpc-web"])
    for _ in 0..<2 { _ = await client.unary(.unary, "x") }
    XCTAssertEqual(peer.seen.all.suffix(3), ["grpc", "grpc-web", "grpc-web"])
  }

  func testManyFirstCalls() async {
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let client = peer.client()
    await withTaskGroup(of: Text?.self) { group in
      for number in 0..<100 {
        group.addTask { await client.unary(.unary, Text("\(number)")).message }
      }
      var texts: Set<String> = []
      for await message in group { texts.insert(message?.text ?? "") }
      XCTAssertEqual(texts.count, 100)
    }
    XCTAssertEqual(peer.processed.count("grpc-web"), 100)
    XCTAssertEqual(peer.processed.all.count, 100)
  }

  func testGETOnceConnectIsRemembered() async {
    let peer = ProtocolPeer(["grpc": .otherVersion])
    let transport = peer.transport
    let client = peer.client(transport) {
      $0.networkProtocol = .automatic([.grpc, .connect])
      $0.unaryGET = .alwaysEnabled
    }
    for _ in 0..<2 { _ = await client.unary(.read, "x") }
    XCTAssertEqual(transport.streams.map(\.request.method), [.post, .post, .get])
  }

  // MARK: Hedges

  func testHedgesStartInTheProtocolThatGetsThrough() async {
    let call = HedgedCall(configure: { $0.networkProtocol = .automatic() })
    call.attempt(1) { $0.fail(ConnectError(code: .unavailable), isVersionMismatch: true) }
    XCTAssertEqual(call.attempts.map(\.protocolName), ["grpc", "grpc-web"])
    call.advance(by: .seconds(1))
    XCTAssertEqual(call.attempts.map(\.protocolName), ["grpc", "grpc-web", "grpc-web"])
    XCTAssertEqual(call.attempts.last?.request.headers["grpc-previous-rpc-attempts"], ["1"])
    call.attempt(3) { $0.echo() }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
    XCTAssertEqual(call.cancelled, [2])
  }

  func testHedgesThatFailAtTheSameTime() async {
    let call = HedgedCall(configure: { $0.networkProtocol = .automatic() })
    call.advance(by: .seconds(1))
    XCTAssertEqual(call.attempts.map(\.protocolName), ["grpc", "grpc"])
    for number in 1...2 {
      call.attempt(number) { $0.fail(ConnectError(code: .unavailable), isVersionMismatch: true) }
    }
    XCTAssertEqual(call.attempts.map(\.protocolName), ["grpc", "grpc", "grpc-web", "grpc-web"])
    call.attempt(4) { $0.echo() }
    let response = await call.outcome()
    XCTAssertEqual(response.message, "x")
  }

  // MARK: In memory

  func testInMemoryTransport() async throws {
    let transport = InMemoryTransport()
    let seen = Events()
    transport.onUnary(.unary) { request, context in
      seen.add(context.requestHeaders.first("content-type") ?? "")
      return request
    }
    transport.inject(.refuseHTTP2)
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(host: "http://memory", networkProtocol: .automatic(), codec: JSONCodec())
    )
    for _ in 0..<2 {
      let response = await client.unary(.unary, "x")
      XCTAssertEqual(response.message, "x", "\(String(describing: response.error))")
    }
    XCTAssertEqual(seen.all, ["application/grpc-web+json", "application/grpc-web+json"])
  }
}
