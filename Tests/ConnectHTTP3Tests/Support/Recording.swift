internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import XCTest

/// Records the events of a stream.
final class RecordingHandler: HTTPStreamHandler {
  enum Event: Equatable {
    case started
    case writable
    case head(Int, Headers)
    case bytes(String)
    case end(Headers)
    case failed(Code, isUnprocessed: Bool)
  }

  var events: [Event] = []
  var failure: HTTPStreamFailure?
  var info: HTTPConnectionInfo?
  var receivedBytes = 0
  var isOver = false
  /// Whether bytes are consumed as soon as they arrive.
  var isConsuming = true
  /// Runs after each event.
  var onEvent: ((Event) -> Void)?
  weak var stream: (any HTTPStream)?

  init(isConsuming: Bool = true) { self.isConsuming = isConsuming }

  /// The events, with adjacent pieces of the body joined.
  var joinedEvents: [Event] {
    self.events.reduce(into: []) { joined, event in
      if case .bytes(let more) = event, case .bytes(let text)? = joined.last {
        joined[joined.count - 1] = .bytes(text + more)
      } else {
        joined.append(event)
      }
    }
  }

  var message: String { self.failure?.error.message ?? "" }

  private func record(_ event: Event) {
    XCTAssertFalse(self.isOver, "\(event) after the end")
    switch event {
    case .end, .failed: self.isOver = true
    default: break
    }
    self.events.append(event)
    self.onEvent?(event)
  }

  func streamDidStart(on connection: HTTPConnectionInfo) {
    self.info = connection
    self.record(.started)
  }

  func streamDidBecomeWritable() { self.record(.writable) }
  func streamDidReceive(_ head: HTTPResponseHead) { self.record(.head(head.status, head.headers)) }

  func streamDidReceive(_ bytes: ByteBuffer) {
    XCTAssertGreaterThan(bytes.readableBytes, 0)
    self.receivedBytes += bytes.readableBytes
    if self.isConsuming { self.stream?.consume(bytes.readableBytes) }
    self.record(.bytes(String(buffer: bytes)))
  }

  func streamDidEnd(trailers: Headers) { self.record(.end(trailers)) }

  func streamDidFail(_ failure: HTTPStreamFailure) {
    self.failure = failure
    self.record(.failed(failure.error.code, isUnprocessed: failure.isUnprocessed))
  }
}

/// Records the events that a connection reports to the pool.
final class RecordingDelegate: StreamConnectionDelegate {
  enum Event: Equatable {
    case canServe(Int)
    case closedStream
    case willClose
    case suspect
    case alive
    case closed(Code?)
  }

  var events: [Event] = []
  var error: ConnectError?
  var roundTrip: Duration?
  var unfitReasons: [String] = []

  var closedStreams: Int { self.events.count { $0 == .closedStream } }

  func connection(_ connection: any StreamConnection, canServe concurrentStreams: Int) {
    self.events.append(.canServe(concurrentStreams))
  }

  func connectionDidCloseStream(_ connection: any StreamConnection) { self.events.append(.closedStream) }
  func connectionWillClose(_ connection: any StreamConnection) { self.events.append(.willClose) }
  func connectionIsSuspect(_ connection: any StreamConnection) { self.events.append(.suspect) }
  func connectionIsAlive(_ connection: any StreamConnection) { self.events.append(.alive) }

  func connection(_ connection: any StreamConnection, roundTrip: Duration) { self.roundTrip = roundTrip }

  func connectionIsUnfit(_ connection: any StreamConnection, _ reason: String) {
    self.unfitReasons.append(reason)
  }

  func connectionDidClose(_ connection: any StreamConnection, error: ConnectError?) {
    self.error = error
    self.events.append(.closed(error?.code))
  }
}
