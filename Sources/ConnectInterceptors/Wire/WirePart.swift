internal import Connect
internal import NIOCore

/// A part of a request or a response.
enum WirePart: Sendable {
  case request(HTTPStreamRequest)
  case response(HTTPResponseHead)
  /// `credit` is how many bytes of the transport's window are free again once the call has consumed the chunk.
  case chunk(ByteBuffer, credit: Int)
  case end(Headers)
  case failure(HTTPStreamFailure)

  struct Kinds: OptionSet, Sendable {
    var rawValue: UInt8

    static let head = Kinds(rawValue: 1)
    static let chunk = Kinds(rawValue: 2)
    static let end = Kinds(rawValue: 4)
    static let failure = Kinds(rawValue: 8)
  }

  var kind: Kinds {
    switch self {
    case .request, .response: .head
    case .chunk: .chunk
    case .end: .end
    case .failure: .failure
    }
  }

  var isChunk: Bool { if case .chunk = self { true } else { false } }

  /// The bytes of a chunk.
  var size: Int { if case .chunk(let bytes, _) = self { bytes.readableBytes } else { 0 } }

  /// How messages name it.
  var name: String {
    switch self {
    case .request: "the request's head"
    case .response: "the response's head"
    case .chunk: "a chunk"
    case .end: "the end"
    case .failure: "a failure"
    }
  }
}

extension HTTPStreamRequest {
  var completeBody: ByteBuffer? { if case .complete(let body) = self.body { body } else { nil } }

  var isStreamed: Bool { self.completeBody == nil }
}
