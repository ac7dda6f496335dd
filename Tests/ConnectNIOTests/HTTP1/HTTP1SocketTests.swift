import Connect
import ConnectNIO
import NIOCore
import Synchronization
import XCTest

/// HTTP/1.1 against a server whose bytes the test writes.
final class HTTP1SocketTests: XCTestCase {
  func testUnaryCallAndKeepAlive() async throws {
    let heads = Mutex<[String]>([])
    let server = try await RawServer { connection in
      while let request = connection.takeRequest() {
        heads.withLock { $0.append(request.head) }
        connection.respond(
          "\(request.body) \(connection.index) \(connection.requests)",
          fields: "x-a: 1\r\nX-A: 2\r\n"
        )
      }
    }
    let client = try TestClient(server)
    let first = client.call().start(headers: ["x-b": ["3"]])
    let response = try await first.response()
    XCTAssertEqual(response.head.status, 200)
    XCTAssertEqual(response.head.headers["x-a"], ["1", "2"])
    XCTAssertEqual(response.text, "ping 0 1")
    let second = client.call().start()
    let text = try await second.response().text
    XCTAssertEqual(text, "ping 0 2")
    let firstInfo = try await first.connectionInfo()
    let secondInfo = try await second.connectionInfo()
    XCTAssertEqual(firstInfo?.isReused, false)
    XCTAssertEqual(secondInfo?.isReused, true)
    XCTAssertEqual(firstInfo?.version, .http1)
    XCTAssertEqual(firstInfo?.remoteAddress, "127.0.0.1:\(server.port)")
    XCTAssertEqual(server.accepted, 1)
    XCTAssertEqual(
      heads.withLock { $0.first },
      "POST /test HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)\r\nx-b: 3\r\ncontent-length: 4"
    )
    await client.shutdown()
    await server.close()
  }

  func testGetHasNoBodyAndNoLength() async throws {
    let heads = Mutex<[String]>([])
    let server = try await RawServer { connection in
      while let request = connection.takeRequest() {
        heads.withLock { $0.append(request.head) }
        connection.respond(status: "200 ")
      }
    }
    let client = try TestClient(server)
    let response = try await client.call().start(.get, "/a?b=%20", body: .complete(ByteBuffer())).response()
    // The reason phrase is empty, too.
    XCTAssertEqual(response.head.status, 200)
    XCTAssertEqual(heads.withLock { $0 }, ["GET /a?b=%20 HTTP/1.1\r\nhost: 127.0.0.1:\(server.port)"])
    _ = try await client.call().start(.post, body: .complete(ByteBuffer())).response()
    XCTAssertTrue(heads.withLock { $0[1].hasSuffix("content-length: 0") })
    await client.shutdown()
    await server.close()
  }

  func testStreamedRequestWithTrailersAndStreamedResponse() async throws {
    let server = try await RawServer { connection in
      guard connection.text.hasSuffix("x-end: yes\r\n\r\n") else { return }
      let expected = """
        POST /test HTTP/1.1\r\nhost: 127.0.0.1:\(connection.channel.localAddress?.port ?? 0)\r\n\
        transfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\nx-end: yes\r\n\r\n
        """
      let isExpected = connection.text == expected
      connection.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
      connection.send("2\r\nok\r\n")
      connection.send("\(isExpected ? 1 : 5)\r\n\(isExpected ? "!" : "wrong")\r\n0\r\nX-Trailer: t\r\n\r\n")
    }
    let client = try TestClient(server)
    let call = client.call().start(body: .streamed)
    call.write("a")
    try await call.wasWritable(times: 1)
    call.write("bc")
    call.finish(trailers: ["x-end": ["yes"]])
    let response = try await call.response()
    XCTAssertEqual(response.text, "ok!")
    XCTAssertEqual(response.trailers["x-trailer"], ["t"])
    await client.shutdown()
    await server.close()
  }

  func testResponseBeforeTheRequestIsDone() async throws {
    let server = try await RawServer { connection in
      guard connection.requests == 0, connection.text.contains("\r\n\r\n") else { return }
      connection.requests = 1
      connection.respond("early", status: "413 Too Large")
    }
    let client = try TestClient(server)
    let call = client.call().start(body: .streamed)
    call.write("a")
    let response = try await call.response()
    XCTAssertEqual(response.head.status, 413)
    XCTAssertEqual(response.text, "early")
    // Nothing more happens, and the connection is not used again.
    call.write("b")
    call.finish()
    try await eventually("closed") { server.open == 0 }
    await client.shutdown()
    await server.close()
  }

  func testNoReuseAfterConnectionCloseAndHTTP10() async throws {
    for head in ["HTTP/1.1 200 OK\r\nconnection: close", "HTTP/1.0 200 OK"] {
      let server = try await RawServer { connection in
        while connection.takeRequest() != nil {
          connection.send("\(head)\r\ncontent-length: 2\r\n\r\nok")
        }
      }
      let client = try TestClient(server)
      for _ in 0..<2 {
        let text = try await client.call().start().response().text
        XCTAssertEqual(text, "ok")
      }
      XCTAssertEqual(server.accepted, 2)
      await client.shutdown()
      await server.close()
    }
  }

  func testBodyThatEndsWithTheConnection() async throws {
    let server = try await RawServer { connection in
      connection.send("HTTP/1.1 200 OK\r\n\r\nall of it")
      connection.close()
    }
    let client = try TestClient(server)
    let text = try await client.call().start().response().text
    XCTAssertEqual(text, "all of it")
    await client.shutdown()
    await server.close()
  }

  func testLostConnections() async throws {
    let cases: [(answer: String, message: String)] = [
      ("", "before the response"),
      ("HTTP/1.1 200 OK\r\ncontent-le", "before the response"),
      ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", "in the middle of the response"),
      ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "in the middle of the response"),
      ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "in the middle of the response"),
      ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n", "in the middle of the response"),
      ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhalf", "in the middle of the response"),
      ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y", "in the middle of the response"),
    ]
    for isReset in [false, true] {
      for (answer, message) in cases {
        let server = try await RawServer { connection in
          guard connection.takeRequest() != nil else { return }
          connection.send(answer)
          if isReset { connection.reset() } else { connection.close() }
        }
        let client = try TestClient(server)
        let failure = try await client.call().start().failure()
        XCTAssertEqual(failure.error.code, .unavailable, answer)
        // A reset may discard what was sent before it.
        if !isReset { XCTAssertTrue(failure.error.message?.contains(message) == true, "\(failure.error)") }
        XCTAssertFalse(failure.isUnprocessed)
        await client.shutdown()
        await server.close()
      }
    }
  }

  func testReusedConnectionThatTheServerClosesIsNotUnprocessed() async throws {
    let server = try await RawServer { connection in
      guard connection.takeRequest() != nil else { return }
      if connection.requests == 1 { connection.respond() } else { connection.close() }
    }
    let client = try TestClient(server)
    _ = try await client.call().start().response()
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable)
    XCTAssertFalse(failure.isUnprocessed)
    await client.shutdown()
    await server.close()
  }

  func testServerClosesAnIdleConnection() async throws {
    let server = try await RawServer { connection in
      guard connection.takeRequest() != nil else { return }
      connection.respond()
      // Its own half only: the rest is closed when the client has closed its half, having seen the end.
      connection.channel.close(mode: .output, promise: nil)
    }
    let client = try TestClient(server)
    _ = try await client.call().start().response()
    try await eventually("closed by both sides") { server.open == 0 }
    let text = try await client.call().start().response().text
    XCTAssertEqual(text, "pong")
    XCTAssertEqual(server.accepted, 2)
    await client.shutdown()
    await server.close()
  }

  func testGarbageIsAnInternalError() async throws {
    let samples = [
      "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2.0 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
    ]
    for garbage in samples {
      let server = try await RawServer { connection in
        connection.send(garbage)
      }
      let client = try TestClient(server)
      let failure = try await client.call().start().failure()
      XCTAssertEqual(failure.error.code, .internalError, "\(failure.error)")
      XCTAssertTrue(failure.error.message?.contains("HTTP/1.1") == true)
      await client.shutdown()
      await server.close()
    }
  }

  func testHeaderListLimit() async throws {
    let size = Mutex(0)
    let server = try await RawServer { connection in
      while let request = connection.takeRequest() {
        let big = String(repeating: "x", count: size.withLock { $0 })
        if request.head.contains("/trailers") {
          connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nbig: \(big)\r\n\r\n")
        } else {
          connection.respond(fields: "big: \(big)\r\n")
        }
      }
    }
    let client = try TestClient(server, .init(http1: .init(maxHeaderListSize: 20_000)))
    // content-length: 1 has 14 + 1 + 32 bytes, big has 3 + 32.
    for (path, overhead) in [("/head", 47 + 35), ("/trailers", 35)] {
      size.withLock { $0 = 20_000 - overhead }
      _ = try await client.call().start(.post, path).response()
      size.withLock { $0 += 1 }
      let failure = try await client.call().start(.post, path).failure()
      XCTAssertEqual(failure.error.code, .resourceExhausted)
      let message = failure.error.message ?? ""
      XCTAssertTrue(message.contains("20001") && message.contains("20000"), message)
      size.withLock { $0 = 1_000_000 }
      let overflow = try await client.call().start(.post, path).failure()
      XCTAssertEqual(overflow.error.code, .resourceExhausted, "\(overflow.error)")
    }
    await client.shutdown()
    await server.close()
  }

  func testManyHeaderFieldsAreAccepted() async throws {
    let fields = (0..<1_000).map { "f\($0): \($0)\r\n" }.joined()
    let server = try await RawServer { connection in
      while connection.takeRequest() != nil { connection.respond(fields: fields) }
    }
    let client = try TestClient(server)
    let response = try await client.call().start().response()
    XCTAssertEqual(response.head.headers["f999"], ["999"])
    await client.shutdown()
    await server.close()
  }

  func testUnreadBodyIsHeldBack() async throws {
    let total = 48 << 20
    let server = try await RawServer { connection in
      guard let request = connection.takeRequest() else { return }
      guard request.head.contains("/large") else { return connection.respond() }
      connection.send("HTTP/1.1 200 OK\r\ncontent-length: \(total)\r\n\r\n")
      connection.channel.writeAndFlush(ByteBuffer(repeating: 0x61, count: total), promise: nil)
    }
    let client = try TestClient(server)
    let call = client.call(consumesAtOnce: false).start(.post, "/large")
    try await call.hasReceived(1 << 20)
    // With each round trip of another connection, the client's loop looks at its sockets: it would read what is there.
    for _ in 0..<100 { _ = try await client.call().start(.post, "/small").response() }
    let held = try await call.receivedCount()
    XCTAssertLessThanOrEqual(held, (1 << 20) + (256 << 10))
    // Taking it lets the rest come, and never more than the window at a time.
    var consumed = 0
    while consumed < total {
      try await call.hasReceived(consumed + 1)
      let received = try await call.receivedCount()
      XCTAssertLessThanOrEqual(received - consumed, (1 << 20) + (256 << 10))
      call.consume(received - consumed)
      consumed = received
    }
    let response = try await call.response()
    XCTAssertEqual(response.head.status, 200)
    // The connection is of use for the next call, as that of the small ones.
    XCTAssertEqual(server.open, 2)
    XCTAssertEqual(server.accepted, 2)
    await client.shutdown()
    await server.close()
  }

  func testWritesSuspendWhenThePeerDoesNotRead() async throws {
    // Reads nothing from the first connection.
    let server = try await RawServer(
      onConnect: { connection in
        guard connection.index == 0 else { return }
        _ = try? connection.channel.syncOptions?.setOption(.autoRead, value: false)
      },
      onData: { connection in
        while connection.takeRequest() != nil { connection.respond() }
      }
    )
    let client = try TestClient(server)
    let chunk = ByteBuffer(repeating: 0, count: 64 << 10)
    let written = Mutex(0)
    let call = client.call().onWritable { call in
      written.withLock { $0 += chunk.readableBytes }
      call.write(chunk)
    }
    call.start(body: .streamed)
    call.write(chunk)
    try await call.hasStarted()
    try await eventually("accepted") { server.open == 1 }
    var last = 0
    try await eventually("writing has stopped") {
      last = written.withLock { $0 }
      // With each round trip of another connection, the client's loop looks at its sockets: it would write where there is room.
      for _ in 0..<20 { _ = try await client.call().start(.post, "/small").response() }
      return last > 0 && last == written.withLock { $0 }
    }
    // What the kernel buffers, and no more.
    XCTAssertLessThan(last, 32 << 20)
    call.cancel()
    await client.shutdown()
    await server.close()
  }

  func testCancelClosesTheConnection() async throws {
    let server = try await RawServer { _ in }
    let client = try TestClient(server)
    let call = client.call().start()
    try await call.hasStarted()
    try await eventually("accepted") { server.open == 1 }
    call.cancel()
    try await eventually("closed") { server.open == 0 }
    await client.shutdown()
    await server.close()
  }

  func testTargetWithLineBreakIsRefused() async throws {
    let server = try await RawServer { connection in
      while connection.takeRequest() != nil { connection.respond() }
    }
    let client = try TestClient(server)
    let failure = try await client.call().start(.post, "/a\r\nx: y").failure()
    XCTAssertEqual(failure.error.code, .invalidArgument)
    let text = try await client.call().start().response().text
    XCTAssertEqual(text, "pong")
    XCTAssertEqual(server.accepted, 1)
    await client.shutdown()
    await server.close()
  }
}
