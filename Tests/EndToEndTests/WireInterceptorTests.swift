internal import Connect
internal import ConnectInterceptors
internal import ConnectNIO
internal import ConnectTesting
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf
import XCTest

/// Wire interceptors over real servers: ours, hypercorn, grpcio, and one that reads trailers of requests.
final class WireInterceptorTests: XCTestCase {
  /// A client over `http`, with interceptors.
  private func withClient(
    _ host: String,
    _ networkProtocol: NetworkProtocol = .connect,
    version: Version = .http2,
    interceptors: [WireInterceptorFactory],
    configure: (inout ProtocolClientConfig) -> Void = { _ in },
    _ body: (ProtocolClient) async throws -> Void
  ) async throws {
    let http = NIOHTTPClient(configuration: version.configuration)
    var config = ProtocolClientConfig.forTests(host: host)
    config.networkProtocol = networkProtocol
    configure(&config)
    do {
      try await body(
        ProtocolClient(httpClient: WireHTTPClient(http, interceptors: interceptors), config: config)
      )
      try await bounded("the client's shutdown") { await http.shutdown(within: .seconds(10)) }
    } catch {
      await http.shutdown(within: .zero)
      throw error
    }
  }

  // MARK: Bytes pass

  /// Interceptors that cut all bodies into pieces, and delay them.
  private static let cutters: [WireInterceptorFactory] = [
    { exchange in Cutter(exchange, pieces: 3) }, { exchange in Cutter(exchange, pieces: 2) },
  ]

  func testAllKindsOfCallsInAllProtocols() async throws {
    let hypercorn = "http://127.0.0.1:\(try await PythonServer.shared(.connect).port("http"))"
    let grpcio = "http://127.0.0.1:\(try await PythonServer.shared(.grpc).port("plain"))"
    let loopback = try await LoopbackServer.start()
    let settings: [(String, NetworkProtocol, Version)] = [
      (hypercorn, .connect, .http1), (hypercorn, .connect, .http2), (hypercorn, .grpc, .http2),
      (hypercorn, .grpcWeb, .http1), (hypercorn, .grpcWeb, .http2), (grpcio, .grpc, .http2),
      (loopback.url, .connect, .http1), (loopback.url, .connect, .http2), (loopback.url, .grpc, .http2),
      (loopback.url, .grpcWeb, .http1),
    ]
    for (host, networkProtocol, version) in settings {
      let what = "\(host) \(networkProtocol) \(version)"
      try await self.withClient(host, networkProtocol, version: version, interceptors: Self.cutters) {
        let response = await $0.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
        XCTAssertEqual(
          response.message?.payload.text,
          "hello",
          "\(what): \(String(describing: response.error))"
        )
        let count = $0.serverStream(TestMethods.count, .with { $0.instruction.messageCount = 30 })
        let numbers = await count.results.collect()
        XCTAssertEqual(
          numbers.messages.map(\.number),
          Array(0..<30),
          "\(what): \(String(describing: numbers.error))"
        )
        let sum = $0.clientStream(TestMethods.sum)
        for number in 1...50 { try await sum.send(.with { $0.number = Int64(number) }) }
        let total = await sum.closeAndReceive()
        XCTAssertEqual(total.message?.sum, 1275, "\(what): \(String(describing: total.error))")
        let error = await $0.unary(
          TestMethods.echo,
          .with {
            $0.instruction.failure.code = .notFound
            $0.instruction.failure.message = "not there"
          }
        )
        XCTAssertEqual(error.code, .notFound, what)
      }
    }
    await loopback.stop()
  }

  /// Larger than all windows, in both directions.
  func testLargeBodies() async throws {
    for version in Version.allCases {
      let loopback = try await LoopbackServer.start()
      try await self.withClient(loopback.url, version: version, interceptors: Self.cutters) { client in
        let flood = client.serverStream(TestMethods.flood, .with { $0.totalBytes = 8 << 20 })
        var size = 0
        for try await message in flood.messages { size += message.data.count }
        XCTAssertEqual(size, 8 << 20, "\(version)")
        let data = Data(repeating: 7, count: 1 << 20)
        let conversation = client.bidirectionalStream(TestMethods.converse)
        async let outcome = conversation.results.collect()
        for _ in 0..<8 { try await conversation.send(.with { $0.payload.data = data }) }
        conversation.finish()
        let answers = await outcome
        XCTAssertEqual(answers.code, .ok, "\(version): \(String(describing: answers.error))")
        XCTAssertEqual(answers.messages.map(\.payload.data), Array(repeating: data, count: 8))
      }
      await loopback.stop()
    }
  }

  // MARK: The signer

  private static let secret = Array("a secret of the tests".utf8)

  func testHypercornVerifiesSignaturesOfUnaryCalls() async throws {
    let host = "http://127.0.0.1:\(try await PythonServer.shared(.signed).port("http"))"
    for version in Version.allCases {
      try await self.withClient(
        host,
        version: version,
        interceptors: [{ _ in RequestSigner(keyID: "k1", secret: Self.secret) }],
        configure: { $0.compression = Compression(requests: GzipCompressionPool(), minimumRequestBytes: 100) }
      ) { client in
        for text in ["", "hello", String(repeating: "x", count: 100_000)] {
          let response = await client.unary(TestMethods.echo, .with { $0.payload.text = text })
          XCTAssertEqual(response.code, .ok, "\(version): \(String(describing: response.error))")
          XCTAssertEqual(response.headers["x-signed-in"], ["header"])
        }
      }
      // GET, whose message is in the target.
      try await self.withClient(
        host,
        version: version,
        interceptors: [{ _ in RequestSigner(key: { .init(id: "k2", secret: Array(0..<100)) }) }],
        configure: { $0.unaryGET = .alwaysEnabled }
      ) { client in
        let response = await client.unary(TestMethods.lookup, .with { $0.key = "k" })
        XCTAssertEqual(response.code, .ok, "\(version): \(String(describing: response.error))")
      }
      try await self.withClient(
        host,
        version: version,
        interceptors: [{ _ in RequestSigner(keyID: "k1", secret: [1, 2, 3]) }]
      ) { client in
        let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "x" })
        XCTAssertEqual(response.code, .unauthenticated)
        XCTAssertTrue(response.error?.message?.contains("wrong signature") == true)
      }
    }
  }

  func testAServerVerifiesSignaturesOfGRPCStreams() async throws {
    let host = "http://127.0.0.1:\(try await PythonServer.shared(.signed).port("grpc"))"
    let ways: [(RequestSigner.StreamedBodies, String)] = [
      (.trailer, "trailer"), (.gathered(maximumBytes: 1 << 20), "header"),
    ]
    for (streamedBodies, place) in ways {
      try await self.withClient(
        host,
        .grpc,
        interceptors: [
          { _ in
            RequestSigner(keyID: "k1", secret: Self.secret, options: .init(streamedBodies: streamedBodies))
          }
        ]
      ) { client in
        let stream = client.bidirectionalStream(TestMethods.converse)
        for index in 0..<20 {
          try await stream.send(.with { $0.payload.text = String(repeating: "\(index)", count: 10_000) })
        }
        stream.finish()
        let outcome = await stream.results.collect()
        XCTAssertEqual(outcome.code, .ok, "\(place): \(String(describing: outcome.error))")
        XCTAssertEqual(outcome.messages.count, 20, place)
        XCTAssertEqual(outcome.headers.first?["x-signed-in"], [place])
        let unary = await client.unary(TestMethods.echo, .with { $0.payload.text = "hello" })
        XCTAssertEqual(unary.code, .ok, "\(place): \(String(describing: unary.error))")
        XCTAssertEqual(unary.headers["x-signed-in"], ["header"])
      }
    }
  }

  /// grpcio takes no notice of the trailers of requests.
  func testGrpcioTakesSignedStreams() async throws {
    let host = "http://127.0.0.1:\(try await PythonServer.shared(.grpc).port("plain"))"
    try await self.withClient(
      host,
      .grpc,
      interceptors: [{ _ in RequestSigner(keyID: "k1", secret: Self.secret) }]
    ) { client in
      let sum = client.clientStream(TestMethods.sum)
      for number in 1...10 { try await sum.send(.with { $0.number = Int64(number) }) }
      let answer = await sum.closeAndReceive()
      XCTAssertEqual(answer.message?.sum, 55, "\(String(describing: answer.error))")
    }
  }

  /// HTTP/1.1 has trailers behind the last chunk.
  func testTrailersInEachVersion() async throws {
    for version in Version.allCases {
      let loopback = try await LoopbackServer.start()
      try await self.withClient(
        loopback.url,
        version: version,
        interceptors: [{ _ in RequestSigner(keyID: "k1", secret: Self.secret) }]
      ) { client in
        let sum = client.clientStream(TestMethods.sum)
        try await sum.send(.with { $0.number = 1 })
        let answer = await sum.closeAndReceive()
        XCTAssertEqual(answer.message?.sum, 1, "\(version): \(String(describing: answer.error))")
      }
      let record = try XCTUnwrap(loopback.journal.snapshot.requests.last)
      XCTAssertEqual(record.trailers["x-signature"].first?.count, 64, "\(version)")
      XCTAssertEqual(record.headers["x-signature-key"], ["k1"], "\(version)")
      await loopback.stop()
    }
  }

  func testABodyThatIsTooLargeToGather() async throws {
    let loopback = try await LoopbackServer.start()
    try await self.withClient(
      loopback.url,
      interceptors: [
        { _ in
          RequestSigner(secret: Self.secret, options: .init(streamedBodies: .gathered(maximumBytes: 1000)))
        }
      ]
    ) { client in
      let sum = client.clientStream(TestMethods.sum)
      try? await sum.send(.with { $0.instruction.failure.message = String(repeating: "x", count: 2000) })
      let answer = await sum.closeAndReceive()
      XCTAssertEqual(answer.code, .resourceExhausted)
      XCTAssertTrue(answer.error?.message?.contains("more than 1000 bytes") == true)
      XCTAssertEqual(answer.error?.isUnsent, true)
    }
    XCTAssertEqual(loopback.journal.snapshot.requests.count, 0)
    await loopback.stop()
  }

  func testAKeyThatHangsOrIsRefused() async throws {
    let loopback = try await LoopbackServer.start()
    let cancelled = Recorder<Bool>()
    try await self.withClient(
      loopback.url,
      interceptors: [
        { _ in
          RequestSigner(key: {
            try? await Task.sleep(for: .seconds(3600))
            cancelled.record(Task.isCancelled)
            throw CancellationError()
          })
        }
      ]
    ) { client in
      let late = await client.unary(TestMethods.echo, .init(), options: .init(timeout: .milliseconds(50)))
      XCTAssertEqual(late.code, .deadlineExceeded)
      let task = Task { await client.unary(TestMethods.echo, .init()) }
      try await Task.sleep(for: .milliseconds(20))
      task.cancel()
      let given = await task.value
      XCTAssertEqual(given.code, .canceled)
    }
    let all = try await cancelled.wait(for: 2)
    XCTAssertEqual(all, [true, true])
    try await self.withClient(
      loopback.url,
      interceptors: [
        { _ in RequestSigner(key: { throw ConnectError(code: .permissionDenied, message: "no key for you") })
        }
      ]
    ) { client in
      let response = await client.unary(TestMethods.echo, .init())
      XCTAssertEqual(response.code, .permissionDenied)
      XCTAssertEqual(response.error?.isUnsent, true)
    }
    XCTAssertEqual(loopback.journal.snapshot.requests.count, 0)
    await loopback.stop()
  }

  // MARK: Retries and load

  /// Each attempt has an interceptor, and so a signature, of its own.
  func testEachAttemptHasItsOwn() async throws {
    let host = "http://127.0.0.1:\(try await PythonServer.shared(.signed).port("http"))"
    let count = Recorder<String>()
    try await self.withClient(
      host,
      interceptors: [
        { exchange in
          count.record(exchange.request.target)
          return RequestSigner(keyID: "k1", secret: count.values.count == 1 ? [1] : Self.secret)
        }
      ],
      configure: { $0.interceptors = [{ _ in OneMoreTry() }] }
    ) { client in
      let response = await client.unary(TestMethods.echo, .with { $0.payload.text = "x" })
      XCTAssertEqual(response.code, .ok, "\(String(describing: response.error))")
    }
    XCTAssertEqual(count.values.count, 2)
  }

  func testManyCallsAndCancellations() async throws {
    let loopback = try await LoopbackServer.start()
    let begun = Recorder<Void>()
    let ended = Recorder<WireOutcome>()
    try await self.withClient(
      loopback.url,
      interceptors: Self.cutters + [
        { _ in
          begun.record(())
          return WireFunction(endFunction: { ended.record($0) })
        }
      ]
    ) { client in
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<400 {
          group.addTask {
            let call = Task {
              await client.unary(TestMethods.echo, .with { $0.payload.text = "hello \(index)" })
            }
            if index % 3 == 0 {
              try? await Task.sleep(for: .microseconds(index * 10))
              call.cancel()
            }
            let response = await call.value
            if response.code == .ok {
              XCTAssertEqual(response.message?.payload.text, "hello \(index)")
            } else {
              XCTAssertEqual(response.code, .canceled)
            }
          }
        }
      }
    }
    try await eventually("all have ended") { begun.values.count == ended.values.count }
    await loopback.stop()
  }

  // MARK: The tap

  func testTheTapSeesWhatGoesOverTheWire() async throws {
    for version in Version.allCases {
      let loopback = try await LoopbackServer.start()
      let lines = Recorder<String>()
      let tap = WireTap(lines: { lines.record($0) })
      try await self.withClient(
        loopback.url,
        version: version,
        interceptors: [{ exchange in WireTapInterceptor(tap, exchange) }]
      ) { client in
        let response = await client.unary(
          TestMethods.echo,
          .with { $0.payload.text = "hello" },
          options: CallOptions(headers: ["authorization": ["Bearer s3cret"], "x-one": ["1"]])
        )
        XCTAssertEqual(response.message?.payload.text, "hello")
      }
      await tap.flush()
      let text = lines.values.joined()
      for part in [
        "> POST \(loopback.url)/connect.test.v1.TestService/Echo", "authorization: <redacted>", "x-one: 1",
        "= \(version.rawValue) to 127.0.0.1", "< 200", "content-type: application/proto", "|....hello|",
        "end of response",
      ] {
        XCTAssertTrue(text.contains(part), "\(version): \(part) is not in\n\(text)")
      }
      // The server's message has the headers that it saw.
      let head = try XCTUnwrap(text.range(of: "< 200"))
      XCTAssertFalse(text[..<head.lowerBound].contains("s3cret"))
      await loopback.stop()
    }
  }
}

/// Cuts bodies into pieces, every other of which comes later.
private final class Cutter: WireInterceptor {
  private let exchange: WireExchange
  private let pieces: Int
  private var count = 0

  init(_ exchange: WireExchange, pieces: Int) {
    self.exchange = exchange
    self.pieces = pieces
  }

  func wireFunction() -> WireFunction {
    WireFunction(
      requestHeadFunction: { head, proceed in proceed.task { proceed(head) } },
      requestChunkFunction: { bytes, proceed in self.cut(bytes, proceed) },
      responseChunkFunction: { bytes, proceed in self.cut(bytes, proceed) }
    )
  }

  private func cut(_ bytes: ByteBuffer, _ proceed: Proceed<WireChunkVerb>) {
    var bytes = bytes
    let size = bytes.readableBytes / self.pieces + 1
    var chunks: [ByteBuffer] = []
    while bytes.readableBytes > 0 {
      chunks.append(bytes.readSlice(length: min(size, bytes.readableBytes)) ?? ByteBuffer())
    }
    self.count += 1
    if self.count % 2 == 0 { return proceed.send(chunks) }
    let all = chunks
    DispatchQueue.global().async { proceed.send(all) }
  }
}

/// Makes another attempt after `unauthenticated`.
private final class OneMoreTry: Interceptor {
  func unaryFunction() -> UnaryFunction {
    UnaryFunction(responseFunction: { response, proceed in
      if response.code == .unauthenticated { proceed.retry() } else { proceed(response) }
    })
  }
}
