internal import Connect
internal import NIOCore
internal import SwiftProtobuf

/// How the explorer's server writes the answer to one attempt: in the Connect protocol, with marks of the attempt.
struct AnswerFormat {
  /// Unique among all attempts.
  let id: String
  let method: StreamType

  var isUnary: Bool { self.method == .unary }

  /// The text of a message, by its number from 1 on.
  func text(_ number: Int, to messages: [String]) -> String {
    let index = self.method == .bidirectionalStream ? number - 1 : 0
    let message = messages.indices.contains(index) ? messages[index] : "nothing"
    // Of a long message only the beginning: clients have limits for what they receive.
    return "\(self.id): answer \(number) to \(shortened(message, to: 1_000))"
  }

  func head(_ code: Code) -> HTTPResponseHead {
    let isFailure = self.isUnary && code != .ok
    let type =
      isFailure ? "application/json" : self.isUnary ? "application/proto" : "application/connect+proto"
    var headers: Headers = ["content-type": [type], MetadataMark.header.rawValue: [self.id]]
    if self.isUnary { headers["trailer-\(MetadataMark.trailer.rawValue)"] = [self.id] }
    return HTTPResponseHead(status: isFailure ? code.serverHTTPStatus : 200, headers: headers)
  }

  /// The body of a unary call that fails. Written by hand: an encoder would take 8 % of all time.
  func failure(_ code: Code) -> ByteBuffer { ByteBuffer(string: self.error(code)) }

  private func error(_ code: Code) -> String {
    #"{"code":"\#(code.name)","message":"the server says \#(code.name) (\#(self.id))"}"#
  }

  func message(_ text: String) -> ByteBuffer {
    let bytes: [UInt8] = (try? Google_Protobuf_StringValue(text).serializedBytes()) ?? []
    return self.isUnary ? ByteBuffer(bytes: bytes) : Envelope.encode(ByteBuffer(bytes: bytes))
  }

  /// The end of a stream.
  func end(_ code: Code) -> ByteBuffer {
    let metadata = #""metadata":{"\#(MetadataMark.trailer.rawValue)":["\#(self.id)"]}"#
    let text = code == .ok ? "{\(metadata)}" : #"{"error":\#(self.error(code)),\#(metadata)}"#
    return Envelope.encode(ByteBuffer(string: text), flags: 2)
  }
}

/// What the server has read of a request.
struct ReceivedRequest {
  /// The texts of its messages.
  private(set) var messages: [String] = []
  /// Whether the request is complete.
  var isComplete = false
  // Without a limit: the test has chosen what its callers send.
  private var envelopes = EnvelopeDecoder(maximumMessageSize: .max)

  /// - Parameter isUnary: Whether a body is one message. The message of a GET request is in the query of its target.
  init(_ request: HTTPStreamRequest, isUnary: Bool) {
    guard case .complete(let body) = request.body else { return }
    self.isComplete = true
    if !isUnary {
      self.read(body)
    } else if request.method == .post {
      self.take(body)
    } else if let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first,
      let message = GETQuery(String(query))?.message
    {
      self.take(message)
    }
  }

  mutating func read(_ bytes: ByteBuffer) {
    self.envelopes.receive(bytes)
    while let envelope = try? self.envelopes.next() { self.take(envelope.message) }
  }

  private mutating func take(_ message: ByteBuffer) {
    let value = try? Google_Protobuf_StringValue(serializedBytes: Array(message.readableBytesView))
    self.messages.append(value?.value ?? "(\(message.readableBytes) unknown bytes)")
  }
}

/// What the server answers, and when.
struct AnswerPlan {
  let answer: ExplorerAnswer
  /// Nil for at once.
  let headDelay: Duration?
  /// Between the headers and the rest; nil for nothing.
  let restDelay: Duration?
}
