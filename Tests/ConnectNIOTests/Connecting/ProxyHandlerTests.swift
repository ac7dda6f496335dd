import Connect
import ConnectChannels
import NIOCore
import NIOEmbedded
import XCTest

@testable import ConnectNIO

final class ProxyHandlerTests: XCTestCase {
  /// What a proxy says when all goes well: each answer comes when the client has sent something.
  private struct Sample {
    var proxy: Proxy
    var answers: [[UInt8]]
    /// What the client sends, in front of each answer.
    var requests: [[UInt8]]

    static let login = Proxy.Credentials(user: "us", password: "secret")
    private static let tunnel: [UInt8] = [5, 1, 0, 3, 6] + Array("server".utf8) + [1, 187]
    private static let opened: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 4, 0]

    static let all = [
      Sample(
        proxy: .httpConnect(host: "proxy", port: 3128, credentials: nil),
        answers: [Array("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nVia: x\r\n\r\n".utf8)],
        requests: [Array("CONNECT server:443 HTTP/1.1\r\nHost: server:443\r\n\r\n".utf8)]
      ),
      Sample(
        proxy: .httpConnect(host: "proxy", port: 3128, credentials: login),
        answers: [Array("HTTP/1.0 200\r\n\r\n".utf8)],
        requests: [
          Array(
            """
            CONNECT server:443 HTTP/1.1\r\nHost: server:443\r\nProxy-Authorization: Basic dXM6c2VjcmV0\r\n\r\n
            """.utf8
          )
        ]
      ),
      Sample(
        proxy: .socks5(host: "proxy", port: 1080, credentials: nil),
        answers: [[5, 0], opened],
        requests: [[5, 1, 0], tunnel]
      ),
      Sample(
        proxy: .socks5(host: "proxy", port: 1080, credentials: login),
        answers: [[5, 2], [1, 0], opened],
        requests: [[5, 2, 0, 2], [1, 2] + Array("us".utf8) + [6] + Array("secret".utf8), tunnel]
      ),
    ]
  }

  /// A handler in a channel that has no socket, and what comes behind the handler.
  private final class Scene {
    let channel = EmbeddedChannel()
    private(set) var outcomes: [Result<Void, ConnectError>] = []
    let next = Collector()

    init(_ proxy: Proxy, timeout: Duration = .seconds(10), isConnected: Bool = true) throws {
      if isConnected { try self.connect() }
      let route = ProxyRoute(proxy: proxy, origin: Origin(scheme: .https, host: "server", port: 443))
      let handler = try ProxyHandler(
        route,
        timeout: timeout,
        timeoutError: { route.timedOut(after: timeout) },
        completion: { [unowned self] in self.handshakeDidEnd($0) }
      )
      try self.channel.pipeline.syncOperations.addHandler(handler)
    }

    private func handshakeDidEnd(_ result: Result<Void, ConnectError>) {
      self.outcomes.append(result)
      guard case .success = result else { return }
      XCTAssertThrowsError(try self.channel.pipeline.syncOperations.handler(type: ProxyHandler.self))
      XCTAssertNoThrow(try self.channel.pipeline.syncOperations.addHandler(self.next, position: .first))
    }

    func connect() throws {
      try self.channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 3128)).wait()
    }

    func send(_ bytes: some Sequence<UInt8>) throws {
      try self.channel.writeInbound(ByteBuffer(bytes: Array(bytes)))
    }

    /// What the client has sent since it was asked last.
    func takeSent() throws -> [UInt8] {
      var bytes: [UInt8] = []
      while let buffer = try self.channel.readOutbound(as: ByteBuffer.self) {
        bytes += buffer.readableBytesView
      }
      return bytes
    }

    var isSuccess: Bool {
      if case .success? = self.outcomes.first, self.outcomes.count == 1 { true } else { false }
    }

    /// Checks that there was one outcome, an error with these texts, and that the channel is closed.
    func checkFailure(_ texts: String..., code: Code = .unavailable, line: UInt = #line) {
      guard case .failure(let error)? = self.outcomes.first, self.outcomes.count == 1 else {
        XCTFail("\(self.outcomes)", line: line)
        return
      }
      XCTAssertEqual(error.code, code, line: line)
      for text in texts {
        XCTAssertEqual(error.message?.contains(text), true, "\(text) is not in: \(error)", line: line)
      }
      for shown in ["\(error)", String(reflecting: error)] {
        XCTAssertFalse(shown.contains("secret"), shown, line: line)
      }
      XCTAssertFalse(self.channel.isActive, line: line)
      XCTAssertEqual(self.next.bytes, [], line: line)
    }

    func end() {
      _ = try? self.channel.finish(acceptAlreadyClosed: true)
    }
  }

  /// Keeps what arrives in the place of the handlers of TLS and HTTP.
  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private(set) var bytes: [UInt8] = []
    private(set) var unseen = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      self.bytes += self.unwrapInboundIn(data).readableBytesView
      self.unseen += 1
    }

    func channelReadComplete(context: ChannelHandlerContext) {
      self.unseen = 0
      context.fireChannelReadComplete()
    }
  }

  private let greeting = Array("first bytes of the server\r\n\r\n".utf8)

  // MARK: - Tunnels

  /// Answers cut at each place, with bytes of the server behind the last answer, in the same read and in later ones.
  func testEveryPlaceToCut() throws {
    for sample in Sample.all {
      let last = sample.answers.count - 1
      for (index, answer) in sample.answers.enumerated() {
        let bytes = index == last ? answer + self.greeting : answer
        for cut in 0...bytes.count {
          let scene = try Scene(sample.proxy)
          for (other, answer) in sample.answers.enumerated() where other != index {
            guard other < index else { break }
            XCTAssertEqual(try scene.takeSent(), sample.requests[other])
            try scene.send(answer)
          }
          XCTAssertEqual(try scene.takeSent(), sample.requests[index])
          try scene.send(bytes[..<cut])
          try scene.send(bytes[cut...])
          for other in sample.answers.indices.dropFirst(index + 1) {
            XCTAssertEqual(try scene.takeSent(), sample.requests[other])
            try scene.send(sample.answers[other] + (other == last ? self.greeting : []))
          }
          try scene.send([42])
          XCTAssertTrue(scene.isSuccess, "\(sample.proxy), cut at \(cut): \(scene.outcomes)")
          XCTAssertEqual(scene.next.bytes, self.greeting + [42], "\(sample.proxy), cut at \(cut)")
          XCTAssertEqual(scene.next.unseen, 0)
          XCTAssertEqual(try scene.takeSent(), [])
          scene.end()
        }
      }
    }
  }

  func testByteByByte() throws {
    for sample in Sample.all {
      let scene = try Scene(sample.proxy)
      for (request, answer) in zip(sample.requests, sample.answers) {
        XCTAssertEqual(try scene.takeSent(), request)
        XCTAssertTrue(scene.outcomes.isEmpty)
        for byte in answer { try scene.send([byte]) }
      }
      XCTAssertTrue(scene.isSuccess)
      XCTAssertEqual(scene.next.bytes, [])
      for byte in self.greeting { try scene.send([byte]) }
      XCTAssertEqual(scene.next.bytes, self.greeting)
      // The time limit is over with the handshake.
      scene.channel.embeddedEventLoop.advanceTime(by: .hours(1))
      XCTAssertTrue(scene.channel.isActive)
      XCTAssertTrue(scene.isSuccess)
      scene.end()
    }
  }

  /// A channel that is not connected yet when the handler is added.
  func testStartsWhenTheChannelIsActive() throws {
    let sample = Sample.all[0]
    let scene = try Scene(sample.proxy, isConnected: false)
    XCTAssertEqual(try scene.takeSent(), [])
    try scene.connect()
    XCTAssertEqual(try scene.takeSent(), sample.requests[0])
    try scene.send(sample.answers[0])
    XCTAssertTrue(scene.isSuccess)
    scene.end()
  }

  // MARK: - Failures

  /// The proxy closes, breaks the connection or is silent behind each prefix of what it should say.
  func testEndAtEachStep() throws {
    struct Broken: Error {}
    for sample in Sample.all {
      for (index, answer) in sample.answers.enumerated() {
        for count in 0..<answer.count {
          let interrupted = { () throws -> Scene in
            let scene = try Scene(sample.proxy)
            for earlier in sample.answers[..<index] { try scene.send(earlier) }
            try scene.send(answer[..<count])
            XCTAssertTrue(scene.outcomes.isEmpty)
            return scene
          }
          let names = ["https://server", "\(sample.proxy)"]

          let closed = try interrupted()
          try closed.channel.close().wait()
          closed.channel.embeddedEventLoop.run()
          closed.checkFailure(names[0], names[1], "closed the connection")

          let broken = try interrupted()
          broken.channel.pipeline.fireErrorCaught(IOError(errnoCode: ECONNRESET, reason: "read"))
          broken.checkFailure(names[0], names[1], "broke", "Connection reset by peer")

          let silent = try interrupted()
          silent.channel.embeddedEventLoop.advanceTime(by: .seconds(9))
          XCTAssertTrue(silent.outcomes.isEmpty)
          silent.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
          silent.checkFailure(names[0], names[1], "timed out after 10.0 seconds", "check that it is")
          for scene in [closed, broken, silent] { scene.end() }
        }
      }
    }
  }

  func testRefusals() throws {
    let http = Sample.all[0].proxy
    let httpLogin = Sample.all[1].proxy
    let socks = Sample.all[2].proxy
    let cases: [(proxy: Proxy, answers: [[UInt8]], texts: [String])] = [
      (
        http, [Array("HTTP/1.1 403 Filtered\r\n\r\n<html>".utf8)],
        ["status 403 (Filtered)", "check its rules"]
      ),
      (http, [Array("HTTP/1.1 407 No\r\n\r\n".utf8)], ["407", "write http://USER:PASSWORD@HOST:PORT"]),
      (httpLogin, [Array("HTTP/1.1 407 No\r\n\r\n".utf8)], ["407", "does not accept the credentials"]),
      (
        httpLogin, [Array("HTTP/1.0 401 Unauthorized\r\n\r\n".utf8)],
        ["401", "does not accept the credentials"]
      ),
      (
        http, [Array("220 mail.example.com\r\n".utf8)],
        ["does not begin with HTTP/", "check that it is an HTTP proxy"]
      ),
      (socks, [[5, 0xff]], ["write socks5://USER:PASSWORD@HOST:PORT"]),
      (Sample.all[3].proxy, [[5, 2], [1, 1]], ["does not accept the credentials"]),
      (socks, [[5, 0], [5, 2, 0, 1]], ["its rules do not allow this"]),
      (socks, [[5, 0], [5, 5, 0, 1]], ["refused the proxy's connection"]),
      (socks, [Array("HTTP/1.1 400".utf8)], ["check that it is a SOCKS5 proxy"]),
    ]
    for (proxy, answers, texts) in cases {
      let scene = try Scene(proxy)
      for answer in answers { try scene.send(answer) }
      for text in texts { scene.checkFailure("cannot connect to https://server: ", "\(proxy)", text) }
      scene.end()
    }
  }

  /// What the proxy sends behind its refusal, and the end of the time limit, change nothing.
  func testNothingAfterAFailure() throws {
    let scene = try Scene(Sample.all[0].proxy)
    try scene.send(Array("HTTP/1.1 403 No\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".utf8))
    scene.channel.embeddedEventLoop.advanceTime(by: .hours(1))
    scene.checkFailure("status 403")
    scene.end()
  }

  func testRoutesThatNoProtocolCanCarry() throws {
    let long = Origin(scheme: .https, host: String(repeating: "a", count: 256), port: 443)
    let route = ProxyRoute(proxy: Sample.all[3].proxy, origin: long)
    XCTAssertThrowsError(try route.handshake()) { error in
      let error = error as? ConnectError
      XCTAssertEqual(error?.code, .failedPrecondition)
      XCTAssertEqual(error?.message?.contains("the limit of SOCKS5"), true, "\(String(describing: error))")
    }
  }
}
