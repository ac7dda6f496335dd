internal import Connect
internal import LoopbackServer
internal import NIOCore
internal import SwiftProtobuf

/// An answer to one question of a server's reflection, in the Connect protocol.
enum ReflectionAnswer {
  case files([Google_Protobuf_FileDescriptorProto])
  case services([String])
  case error(Code, String)
  /// The stream ends with an error.
  case end(Code, String)

  static let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

  /// Lets a server answer each question, of which the closure gets the text: a symbol, or a file's name.
  static func serve(
    _ server: LoopbackServer,
    _ answer: @escaping @Sendable (_ question: String) -> ReflectionAnswer
  ) {
    server.onRaw(self.path) { request, responder in
      try await answer(String(buffer: try await request.body())).send(to: responder)
    }
  }

  func send(to responder: RawResponder) async throws {
    var body = ByteBuffer()
    var end = "{}"
    switch self {
    case .end(let code, let message): end = #"{"error": {"code": "\#(code.name)", "message": "\#(message)"}}"#
    case .files(let files):
      let protos = try files.flatMap { Self.field(0x0a, try $0.serializedBytes() as [UInt8]) }
      body = ByteBuffer(envelope: ByteBuffer(bytes: Self.field(0x22, protos)), flags: 0)
    case .services(let names):
      let services = names.flatMap { Self.field(0x0a, Self.field(0x0a, Array($0.utf8))) }
      body = ByteBuffer(envelope: ByteBuffer(bytes: Self.field(0x32, services)), flags: 0)
    case .error(let code, let message):
      let error = [0x08, UInt8(code.rawValue)] + Self.field(0x12, Array(message.utf8))
      body = ByteBuffer(envelope: ByteBuffer(bytes: Self.field(0x3a, error)), flags: 0)
    }
    body.writeImmutableBuffer(ByteBuffer(envelope: ByteBuffer(string: end), flags: 2))
    try await responder.respond(headers: ["content-type": "application/connect+proto"], body: body)
  }

  /// A field of bytes: its tag, the length, and the content.
  private static func field(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    var (bytes, count) = ([tag], content.count)
    while count >= 128 {
      bytes.append(UInt8(count & 127) | 128)
      count >>= 7
    }
    return bytes + [UInt8(count)] + content
  }
}
