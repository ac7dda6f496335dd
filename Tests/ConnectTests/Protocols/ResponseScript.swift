import NIOCore
import XCTest

@testable import Connect

/// A response, and the results that a decoder makes of it.
struct ResponseScript {
  enum Ending {
    case end
    case failure(ConnectError)
    case none
  }

  var head: HTTPResponseHead?
  var body = ByteBuffer()
  var ending = Ending.end
  var trailers: Headers

  init(
    status: Int? = 200,
    headers: Headers = ["content-type": ["application/proto"]],
    body: some Sequence<UInt8> = [],
    ending: Ending = .end,
    trailers: Headers = ["http-trailer": ["ignored"]]
  ) {
    self.head = status.map { HTTPResponseHead(status: $0, headers: headers) }
    self.body = ByteBuffer(bytes: body)
    self.ending = ending
    self.trailers = trailers
  }

  /// Feeds the response to `decoder` in chunks of the given sizes (the rest in one) and gives what comes out,
  /// asked for after each step or at the end only.
  ///
  /// A decoder that gives more results than its input has bytes is not asked any more.
  func run(
    _ decoder: any ResponseDecoder,
    chunks: [Int] = [],
    asksEachTime: Bool = true
  ) -> ResponseResults {
    var decoder = decoder
    var results = ResponseResults()
    var fed = 0
    func feed(_ bytes: ByteBuffer) {
      fed += bytes.readableBytes
      decoder.receive(bytes)
      results.note(held: decoder.bufferedByteCount, fed: fed)
      if asksEachTime { ask() }
    }
    func ask() {
      while !results.isEndless, let result = decoder.next() {
        results.add(result)
        results.note(result, held: decoder.bufferedByteCount, fed: fed)
      }
    }
    if let head = self.head { decoder.receive(head) }
    if asksEachTime { ask() }
    var rest = self.body
    for size in chunks {
      guard let chunk = rest.readSlice(length: min(size, rest.readableBytes)), chunk.readableBytes > 0 else {
        break
      }
      feed(chunk)
    }
    if rest.readableBytes > 0 { feed(rest) }
    switch self.ending {
    case .end: decoder.receiveEnd(trailers: self.trailers)
    case .failure(let error): decoder.fail(error)
    case .none: break
    }
    ask()
    results.bufferedByteCount = decoder.bufferedByteCount
    // Whatever comes behind the end changes nothing.
    decoder.receive(ByteBuffer(bytes: [0, 0, 0, 0, 0]))
    decoder.receiveEnd(trailers: [:])
    decoder.fail(ConnectError(code: .dataLoss))
    if results.completionCount > 0 { ask() }
    return results
  }
}

/// What came out of a decoder.
struct ResponseResults: Equatable {
  var headers: [Headers] = []
  var messages: [ByteBuffer] = []
  var completionCount = 0
  var code: Code?
  var error: ConnectError?
  var trailers: Headers?
  var bufferedByteCount = 0
  /// Whether headers came first and the completion last.
  var isInOrder = true

  // What it took to get there; two ways of feeding the same response may differ in that.

  /// Whether there were more results than the input had bytes.
  private(set) var isEndless = false
  /// In bytes.
  private(set) var largestMessage = 0
  /// By how many bytes a message and what the decoder still held were ever more than what had arrived.
  private(set) var largestExcess = 0
  /// The same for all messages so far and what the decoder still held.
  private(set) var largestGrowth = 0
  private var resultCount = 0
  private var messageBytes = 0

  /// Takes note of what the decoder holds when it has been fed so many bytes and has given `result`.
  mutating func note(_ result: StreamResult<ByteBuffer>? = nil, held: Int, fed: Int) {
    var size = 0
    if case .message(let message) = result { size = message.readableBytes }
    if result != nil { self.resultCount += 1 }
    self.messageBytes += size
    self.isEndless = self.isEndless || self.resultCount > fed + 3
    self.largestMessage = max(self.largestMessage, size)
    self.largestExcess = max(self.largestExcess, size + held - fed)
    self.largestGrowth = max(self.largestGrowth, self.messageBytes + held - fed)
  }

  mutating func add(_ result: StreamResult<ByteBuffer>) {
    if self.completionCount > 0 { self.isInOrder = false }
    switch result {
    case .headers(let headers):
      if !self.headers.isEmpty || !self.messages.isEmpty { self.isInOrder = false }
      self.headers.append(headers)
    case .message(let message):
      if self.headers.isEmpty { self.isInOrder = false }
      self.messages.append(message)
    case .complete(let code, let error, let trailers):
      if error?.code != (code == .ok ? nil : code) { self.isInOrder = false }
      self.completionCount += 1
      self.code = code
      self.error = error
      self.trailers = trailers
    }
  }

  static func == (lhs: Self, rhs: Self) -> Bool {
    lhs.headers == rhs.headers && lhs.messages == rhs.messages && lhs.completionCount == rhs.completionCount
      && lhs.code == rhs.code && lhs.error?.message == rhs.error?.message
      && lhs.error?.details == rhs.error?.details && lhs.error?.metadata == rhs.error?.metadata
      && lhs.error?.httpStatus == rhs.error?.httpStatus && lhs.trailers == rhs.trailers
      && lhs.isInOrder == rhs.isInOrder && lhs.bufferedByteCount == rhs.bufferedByteCount
  }
}

extension XCTestCase {
  /// Checks that `script` gives the same however it is fed, and that it ends once; returns what it gives.
  func checkedRun(
    _ script: ResponseScript,
    _ decoder: any ResponseDecoder,
    file: StaticString = #filePath,
    line: UInt = #line
  ) -> ResponseResults {
    let results = script.run(decoder)
    XCTAssertEqual(results.completionCount, 1, file: file, line: line)
    XCTAssertTrue(results.isInOrder, file: file, line: line)
    XCTAssertEqual(results.headers.count, script.head == nil ? 0 : 1, file: file, line: line)
    XCTAssertEqual(results.bufferedByteCount, 0, file: file, line: line)
    let bytewise = Array(repeating: 1, count: script.body.readableBytes)
    for chunks in [[], bytewise] {
      for asksEachTime in [true, false] {
        let other = script.run(decoder, chunks: chunks, asksEachTime: asksEachTime)
        XCTAssertEqual(other.code, results.code, file: file, line: line)
        XCTAssertEqual(other.messages, results.messages, file: file, line: line)
        XCTAssertEqual(other.trailers, results.trailers, file: file, line: line)
        XCTAssertEqual(other.completionCount, 1, file: file, line: line)
        XCTAssertTrue(other.isInOrder, file: file, line: line)
      }
    }
    return results
  }
}
