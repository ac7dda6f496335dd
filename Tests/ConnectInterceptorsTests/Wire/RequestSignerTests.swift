import Connect
import ConnectInterceptors
import NIOCore
import XCTest

/// What a signer makes of requests, without sockets.
final class RequestSignerTests: XCTestCase {
  private typealias Provider = @Sendable () async throws -> RequestSigner.Key

  private let secret = Array("secret".utf8)

  private func scene(
    _ streamedBodies: RequestSigner.StreamedBodies = .trailer,
    provider: Provider? = nil,
    also others: [WireInterceptorFactory] = []
  ) -> WireScene {
    let options = RequestSigner.Options(
      streamedBodies: streamedBodies,
      wallClock: WallClock { .seconds(784_111_777) }
    )
    let secret = self.secret
    return WireScene(
      [
        { _ in
          if let provider { return RequestSigner(options: options, key: provider) }
          return RequestSigner(keyID: "k", secret: secret, options: options)
        }
      ] + others
    )
  }

  /// Of Python's hmac and hashlib.
  private static let signatureOfHello = "9bc5c0a2a21943126c4849b685d708144470347dc24fe9519c387cb9da69eb07"

  func testACompleteBody() throws {
    let scene = try self.scene().start { $0.body = .complete(ByteBuffer(string: "hello")) }
    let headers = try XCTUnwrap(scene.stream?.request.headers)
    XCTAssertEqual(headers["date"], ["Sun, 06 Nov 1994 08:49:37 GMT"])
    XCTAssertEqual(headers["x-signature-key"], ["k"])
    XCTAssertEqual(headers["x-signature"], [Self.signatureOfHello])
    XCTAssertEqual(headers["x-a"], ["1"])
  }

  func testATrailer() throws {
    let scene = try self.scene().start()
    XCTAssertEqual(scene.stream?.request.headers["x-signature-key"], ["k"])
    XCTAssertEqual(scene.stream?.request.headers["x-signature"], [])
    scene.write("hel")
    scene.write("lo")
    scene.finish(["t": ["1"]])
    XCTAssertEqual(
      scene.stream?.events,
      ["write hel", "write lo", "finish t=1 x-signature=\(Self.signatureOfHello)"]
    )
  }

  func testAGatheredBody() throws {
    let scene = try self.scene(.gathered(maximumBytes: 5)).start()
    scene.write("hel")
    scene.write("lo")
    XCTAssertNil(scene.stream)
    scene.finish()
    XCTAssertEqual(scene.stream?.request.headers["x-signature"], [Self.signatureOfHello])
    guard case .complete(let body)? = scene.stream?.request.body else { return XCTFail("streamed") }
    XCTAssertEqual(String(buffer: body), "hello")
  }

  func testAGatheredBodyWithTrailers() throws {
    let scene = try self.scene(.gathered(maximumBytes: 5)).start()
    scene.write("hello")
    scene.finish(["t": ["1"]])
    XCTAssertEqual(scene.stream?.request.headers["x-signature"], [Self.signatureOfHello])
    XCTAssertEqual(scene.stream?.events, ["write hello", "finish t=1"])
  }

  func testABodyThatIsTooLarge() throws {
    let scene = try self.scene(.gathered(maximumBytes: 5)).start()
    scene.write("hello")
    scene.write("!")
    XCTAssertNil(scene.stream)
    XCTAssertEqual(scene.caller.events.last, "failed resource_exhausted")
    XCTAssertEqual(scene.caller.failure?.error.isUnsent, true)
  }

  func testAnEmptyBodyAndNoBody() throws {
    let get = try self.scene().start {
      $0.method = .get
      $0.body = .complete(ByteBuffer())
    }
    XCTAssertEqual(get.stream?.request.headers["x-signature"].count, 1)
    let stream = try self.scene().start()
    stream.finish()
    XCTAssertEqual(stream.stream?.events.count, 1)
  }

  /// The key is fetched once for an exchange, and chunks wait for it in order.
  func testAKeyThatComesLater() throws {
    let secret = self.secret
    for bodies in [RequestSigner.StreamedBodies.trailer, .gathered(maximumBytes: 100)] {
      let gate = WireGate()
      let scene = try self.scene(
        bodies,
        provider: {
          await gate.wait()
          return RequestSigner.Key(id: "", secret: secret)
        }
      ).start()
      scene.write("hel")
      scene.write("lo")
      scene.finish()
      XCTAssertNil(scene.stream)
      gate.open()
      scene.wait("started") { scene.stream != nil }
      scene.run()
      XCTAssertEqual(scene.stream?.request.headers["x-signature-key"], [], "without an id")
      let isTrailer = bodies == .trailer
      XCTAssertEqual(
        scene.stream?.events,
        isTrailer ? ["write hel", "write lo", "finish x-signature=\(Self.signatureOfHello)"] : []
      )
    }
  }

  func testAProviderThatThrows() throws {
    struct Broken: Error {}
    let errors: [(any Error, Code)] = [
      (Broken(), .unauthenticated), (ConnectError(code: .permissionDenied), .permissionDenied),
    ]
    for (error, code) in errors {
      let scene = try self.scene(provider: { throw error }).start()
      scene.write("x")
      scene.finish()
      scene.wait("failed") { scene.caller.isOver }
      XCTAssertEqual(scene.caller.failure?.error.code, code)
      XCTAssertNil(scene.stream)
    }
  }

  func testAProviderThatHangsIsCancelledWithTheCall() throws {
    let gate = WireGate()
    let scene = try self.scene(provider: {
      await withTaskCancellationHandler {
        await gate.wait()
      } onCancel: {
        gate.open()
      }
      throw CancellationError()
    }).start()
    scene.write("x")
    scene.expire()
    scene.wait("cancelled") { gate.isOpen }
    scene.run()
    XCTAssertNil(scene.stream)
    XCTAssertFalse(scene.caller.isOver)
  }
}

/// Something to wait for.
final class WireGate: @unchecked Sendable {
  private let lock = NSLock()
  private var opened = false
  private var waiters: [CheckedContinuation<Void, Never>] = []

  var isOpen: Bool { self.lock.withLock { self.opened } }

  func open() {
    let waiters = self.lock.withLock {
      self.opened = true
      defer { self.waiters = [] }
      return self.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = self.lock.withLock {
        if !self.opened { self.waiters.append(continuation) }
        return self.opened
      }
      if isOpen { continuation.resume() }
    }
  }
}
