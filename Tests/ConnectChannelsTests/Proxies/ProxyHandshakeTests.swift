import XCTest

@testable import ConnectChannels

final class ProxyHandshakeTests: XCTestCase {
  private let plain = Proxy.httpConnect(host: "proxy", port: 3128, credentials: nil)
  private let login = Proxy.httpConnect(
    host: "proxy",
    port: 3128,
    credentials: .init(user: "us", password: "secret")
  )
  private let socks = Proxy.socks5(host: "proxy", port: 1080, credentials: nil)
  private let socksLogin = Proxy.socks5(
    host: "proxy",
    port: 1080,
    credentials: .init(user: "us", password: "secret")
  )

  /// What a handshake sends and how it ends, its input cut into pieces.
  private func converse(
    _ proxy: Proxy,
    host: String = "server",
    with input: [UInt8],
    pieces: Int
  ) throws -> (sent: [UInt8], leftover: [UInt8]?) {
    var handshake = try proxy.handshake(host: host, port: 443)
    var sent = handshake.start()
    for start in stride(from: 0, to: input.count, by: pieces) {
      let end = min(start + pieces, input.count)
      switch try handshake.receive(Array(input[start..<end])) {
      case .wait: break
      case .send(let bytes): sent += bytes
      case .done(let leftover): return (sent, leftover + input[end...])
      }
    }
    return (sent, nil)
  }

  private func assertError(
    _ proxy: Proxy,
    _ input: [UInt8],
    _ reason: ProxyError.Reason,
    _ text: String,
    status: Int? = nil,
    line: UInt = #line
  ) {
    // Replies of SOCKS come in pieces of two bytes at most: a request has to be sent before the next one.
    for pieces in [1, 2] {
      XCTAssertThrowsError(try self.converse(proxy, with: input, pieces: pieces), line: line) { error in
        guard let error = error as? ProxyError else { return XCTFail("\(error)", line: line) }
        XCTAssertEqual(error.reason, reason, "\(error)", line: line)
        XCTAssertEqual(error.status, status, line: line)
        XCTAssertTrue(error.message.contains(text), "\(error)", line: line)
        XCTAssertFalse(error.message.contains("secret"), "\(error)", line: line)
      }
    }
  }

  // MARK: - HTTP

  func testConnectRequests() throws {
    let answer = Array("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nrest\r\n\r\n".utf8)
    for pieces in [1, 2, 5, answer.count] {
      let (sent, leftover) = try self.converse(self.plain, with: answer, pieces: pieces)
      XCTAssertEqual(
        String(decoding: sent, as: UTF8.self),
        "CONNECT server:443 HTTP/1.1\r\nHost: server:443\r\n\r\n"
      )
      XCTAssertEqual(leftover, Array("rest\r\n\r\n".utf8))
    }
    let (sent, _) = try self.converse(self.login, host: "2001:db8::1", with: answer, pieces: 1)
    XCTAssertEqual(
      String(decoding: sent, as: UTF8.self),
      "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n"
        + "Proxy-Authorization: Basic dXM6c2VjcmV0\r\n\r\n"
    )
  }

  func testOtherFormsOfSuccess() throws {
    for text in [
      "HTTP/1.0 200\r\n\r\n", "HTTP/1.1 204 No\nA: b\n\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    ] {
      XCTAssertEqual(try self.converse(self.plain, with: Array(text.utf8), pieces: 1).leftover, [], text)
    }
  }

  func testStatuses() {
    func head(_ status: Int, _ fields: String = "") -> [UInt8] {
      Array("HTTP/1.1 \(status) X\r\n\(fields)\r\n".utf8)
    }
    let offer = "proxy-AUTHENTICATE: Negotiate\r\nProxy-Authenticate:Basic realm=\"x\"\r\n"
    self.assertError(
      self.plain,
      head(407, offer),
      .authentication,
      "(it offers Negotiate, Basic)",
      status: 407
    )
    self.assertError(
      self.plain,
      head(407),
      .authentication,
      "write http://USER:PASSWORD@HOST:PORT",
      status: 407
    )
    self.assertError(self.login, head(407), .authentication, "does not accept the credentials", status: 407)
    self.assertError(self.login, head(401), .authentication, "does not accept the credentials", status: 401)
    self.assertError(self.plain, head(401), .refused, "with status 401 (X): there is no tunnel", status: 401)
    self.assertError(self.plain, head(403), .refused, "check its rules", status: 403)
    self.assertError(self.plain, head(405), .refused, "does not support CONNECT", status: 405)
    self.assertError(self.plain, head(502), .serverUnreachable, "cannot reach the server", status: 502)
    self.assertError(self.plain, head(504), .serverUnreachable, "in time", status: 504)
    self.assertError(self.plain, head(302), .refused, "redirects", status: 302)
    self.assertError(self.plain, head(418), .refused, "see the proxy's log", status: 418)
  }

  func testAnswersThatAreNotHTTP() {
    for text in [
      "SSH-2.0-x\r\n", "\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
      "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 101 X\r\n\r\n",
      String(repeating: "HTTP/1.1 100 X\r\n\r\n", count: 9),
      "HTTP/1.1 200 " + String(repeating: "a", count: 16_384),
    ] {
      self.assertError(self.plain, Array(text.utf8), .malformedAnswer, "check that it is an HTTP proxy")
    }
    XCTAssertNil(try self.converse(self.plain, with: Array("HTTP/1.1 200 OK\r\n".utf8), pieces: 1).leftover)
    XCTAssertEqual(try self.plain.handshake(host: "a", port: 1).closedByProxy().reason, .closed)
  }

  func testServersThatNoRequestCanName() {
    for host in ["", "a b", "a\r\nX: y", "a/b", "user@a", "bücher"] {
      for proxy in [self.plain, self.socks] {
        XCTAssertThrowsError(try proxy.handshake(host: host, port: 443), host)
      }
    }
    XCTAssertThrowsError(try self.plain.handshake(host: "a", port: 0))
    XCTAssertThrowsError(try self.plain.handshake(host: "a", port: 65_536))
    XCTAssertThrowsError(try self.socks.handshake(host: String(repeating: "a", count: 256), port: 1))
    let wrong = Proxy.httpConnect(host: "p", port: 1, credentials: .init(user: "a:b", password: ""))
    XCTAssertThrowsError(try wrong.handshake(host: "a", port: 1))
    let long = Proxy.socks5(
      host: "p",
      port: 1,
      credentials: .init(user: "a", password: String(repeating: "b", count: 256))
    )
    XCTAssertThrowsError(try long.handshake(host: "a", port: 1))
  }

  func testCredentialsOfAnyLength() throws {
    var random = SeededRandom(seed: 6)
    for count in 0..<100 {
      let scalars = (0..<count).map { _ in Unicode.Scalar(UInt8.random(in: 0 ... .max, using: &random)) }
      let password = scalars.map { "\($0)" }.joined()
      let proxy = Proxy.httpConnect(host: "p", port: 1, credentials: .init(user: "u", password: password))
      var handshake = try proxy.handshake(host: "a", port: 1)
      let request = String(decoding: handshake.start(), as: UTF8.self)
      let token = Data("u:\(password)".utf8).base64EncodedString()
      XCTAssertTrue(request.contains("\r\nProxy-Authorization: Basic \(token)\r\n"), request)
    }
  }

  // MARK: - SOCKS5

  private let greeting: [UInt8] = [5, 1, 0]
  private let accepted: [UInt8] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]

  func testSOCKSRequests() throws {
    let requests: [(host: String, request: [UInt8])] = [
      ("server", [5, 1, 0, 3, 6] + Array("server".utf8) + [1, 187]),
      ("192.0.2.1", [5, 1, 0, 1, 192, 0, 2, 1, 1, 187]),
      ("::1", [5, 1, 0, 4] + Array(repeating: 0, count: 15) + [1, 1, 187]),
    ]
    let replies: [[UInt8]] = [
      self.accepted, [5, 0, 0, 4] + Array(repeating: 9, count: 18), [5, 0, 0, 3, 0, 1, 2],
      [5, 0, 0, 3, 255] + Array(repeating: 7, count: 257),
    ]
    for (host, request) in requests {
      for reply in replies {
        for pieces in [1, 2] {
          let input = [5, 0] + reply + [42, 43]
          let (sent, leftover) = try self.converse(self.socks, host: host, with: input, pieces: pieces)
          XCTAssertEqual(sent, self.greeting + request)
          XCTAssertEqual(leftover, [42, 43])
        }
      }
    }
  }

  func testSOCKSCredentials() throws {
    let login: [UInt8] = [1, 2] + Array("us".utf8) + [6] + Array("secret".utf8)
    let (sent, leftover) = try self.converse(self.socksLogin, with: [5, 2, 1, 0] + self.accepted, pieces: 1)
    XCTAssertEqual(sent, [5, 2, 0, 2] + login + [5, 1, 0, 3, 6] + Array("server".utf8) + [1, 187])
    XCTAssertEqual(leftover, [])
    let (unasked, _) = try self.converse(self.socksLogin, with: [5, 0] + self.accepted, pieces: 1)
    XCTAssertFalse(String(decoding: unasked, as: UTF8.self).contains("secret"))
  }

  func testSOCKSRepliesBeforeTheRequest() throws {
    var handshake = try self.socks.handshake(host: "server", port: 443)
    _ = handshake.start()
    XCTAssertThrowsError(try handshake.receive([5, 0] + self.accepted)) { error in
      XCTAssertTrue("\(error)".contains("before the request"), "\(error)")
    }
    var login = try self.socksLogin.handshake(host: "server", port: 443)
    _ = login.start()
    XCTAssertThrowsError(try login.receive([5, 2, 1, 0]))
  }

  func testSOCKSErrors() {
    self.assertError(self.socks, [5, 0xff], .authentication, "write socks5://USER:PASSWORD@HOST:PORT")
    self.assertError(self.socksLogin, [5, 0xff], .authentication, "no user and password")
    self.assertError(self.socksLogin, [5, 2, 1, 1], .authentication, "does not accept the credentials")
    self.assertError(self.socks, [5, 2], .malformedAnswer, "method 2, which was not offered")
    self.assertError(self.socks, [4, 0], .malformedAnswer, "version 4")
    self.assertError(
      self.socks,
      Array("HTTP/1.1 400".utf8),
      .malformedAnswer,
      "check that it is a SOCKS5 proxy"
    )
    self.assertError(self.socks, [5, 0, 5, 0, 0, 2], .malformedAnswer, "address type 2")
    let texts = [
      "general failure", "do not allow", "server's network", "the host", "refused", "hops", "CONNECT",
      "type of address", "unknown failure 9",
    ]
    for (index, text) in texts.enumerated() {
      let reasons: [ProxyError.Reason] = [3, 4, 5, 6].contains(index + 1) ? [.serverUnreachable] : [.refused]
      let code = UInt8(index + 1)
      self.assertError(self.socks, [5, 0, 5, code], reasons[0], text, status: index + 1)
    }
    XCTAssertTrue(
      try self.socks.handshake(host: "a", port: 1).closedByProxy().message.contains("is a SOCKS5 proxy")
    )
  }

  // MARK: - Any bytes

  func testRandomMutations() {
    var random = SeededRandom(seed: 7)
    let samples: [(proxy: Proxy, input: [UInt8])] = [
      (self.plain, Array("HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nVia: x\r\n\r\nrest".utf8)),
      (self.login, Array("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\n\r\n".utf8)),
      (self.socks, [5, 0, 5, 0, 0, 3, 4, 1, 2, 3, 4, 0, 80, 1, 2, 3]),
      (self.socksLogin, [5, 2, 1, 0] + self.accepted),
    ]
    var (tunnels, errors) = (0, 0)
    for round in 0..<fuzzRounds {
      let (proxy, input) = samples[round % samples.count]
      let bytes = random.mutated(input)
      do {
        let (sent, leftover) = try self.converse(
          proxy,
          with: bytes,
          pieces: Int.random(in: 1...9, using: &random)
        )
        XCTAssertLessThan(sent.count, 200)
        if let leftover {
          tunnels += 1
          XCTAssertEqual(Array(bytes.suffix(leftover.count)), leftover)
        }
      } catch {
        errors += 1
        XCTAssertTrue(error is ProxyError)
        XCTAssertFalse("\(error)".contains("secret"), "\(error)")
      }
    }
    XCTAssertGreaterThan(tunnels, fuzzRounds / 20)
    XCTAssertGreaterThan(errors, fuzzRounds / 20)
  }

  // MARK: - Repetitions

  func testErrorsThatNoRepetitionChanges() {
    let cases: [(reason: ProxyError.Reason, statuses: [Int?], isFinal: Bool)] = [
      (.invalidURL, [nil], true), (.authentication, [nil, 401, 407], true), (.malformedAnswer, [nil], true),
      (.refused, [403, 405, 501, 301, 302, 2, 7, 8], true), (.refused, [nil, 1, 9, 400, 429, 500], false),
      (.serverUnreachable, [404, 502, 503, 504, 3, 4, 5, 6], false), (.closed, [nil], false),
    ]
    for (reason, statuses, isFinal) in cases {
      for status in statuses {
        let error = ProxyError(reason, message: "no", status: status)
        XCTAssertEqual(error.isFinal, isFinal, "\(reason), \(status.map { "\($0)" } ?? "no status")")
      }
    }
  }
}
