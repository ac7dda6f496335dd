import Connect
import NIOCore
import XCTest

/// A server for clients that may choose their protocol. It answers each protocol as the test says, and counts processed
/// requests.
final class ProtocolPeer: Sendable {
  enum Answer: Sendable {
    /// Sends the request's messages back.
    case echo
    /// Answers with another version of HTTP.
    case otherVersion
    /// Answers with a status, and a content type if one is given.
    case status(Int, String? = nil)
    /// Sends the messages back, and loses the trailers.
    case withoutTrailers
    /// Loses the connection.
    case lost
    /// Refuses the stream, as a server that shuts down does.
    case refused
    /// Answers with an error in the request's protocol.
    case error(Code)
  }

  /// The protocols of requests, in the order in which they came.
  let seen = Events()
  /// The protocols of requests that may have been processed.
  let processed = Events()
  private let answers: Box<[String: Answer]>

  /// - Parameter answers: The answers by protocol: `grpc`, `grpc-web` or `connect`. The default is ``Answer/echo``.
  init(_ answers: [String: Answer] = [:]) {
    self.answers = Box(answers)
  }

  func set(_ name: String, _ answer: Answer) { self.answers.value[name] = answer }

  var transport: ScriptedTransport { ScriptedTransport { self.serve($0) } }

  /// A client of a transport, with all protocols, gRPC first.
  func client(
    _ transport: ScriptedTransport? = nil,
    interceptors: [InterceptorFactory] = [],
    timeout: Duration? = nil,
    configure: (inout ProtocolClientConfig) -> Void = { _ in }
  ) -> ProtocolClient {
    .scripted(transport ?? self.transport, interceptors: interceptors, timeout: timeout) {
      $0.networkProtocol = .automatic()
      configure(&$0)
    }
  }

  func serve(_ stream: ScriptedStream) {
    let name = stream.protocolName
    let answer = self.answers.value[name] ?? .echo
    self.seen.add(name)
    // Connection failures do not wait for the end of the request.
    switch answer {
    case .otherVersion:
      let error = ConnectError(code: .unavailable, message: "no \(name) here")
      stream.fail(error, isVersionMismatch: true)
    case .lost:
      self.processed.add(name)
      stream.fail(ConnectError(code: .unavailable, message: "lost"))
    case .refused:
      stream.fail(ConnectError(code: .unavailable, message: "refused"), isUnprocessed: true)
    default:
      if stream.isFinished {
        self.answer(stream, name, answer)
      } else {
        stream.onFinish = { self.answer($0, name, answer) }
      }
    }
  }

  private func answer(_ stream: ScriptedStream, _ name: String, _ answer: Answer) {
    switch answer {
    case .status(let status, let type):
      if status == 503 { self.processed.add(name) }
      stream.respond(status: status, headers: type.map { ["content-type": [$0]] } ?? [:])
      stream.end()
    case .withoutTrailers:
      self.processed.add(name)
      stream.respond(headers: ["content-type": [stream.contentType]])
      for message in stream.sentMessages { stream.sendMessage(message) }
      stream.end()
    case .error(let code):
      self.processed.add(name)
      stream.reply(code: code)
    default:
      self.processed.add(name)
      stream.echo()
    }
  }
}

extension ScriptedStream {
  var contentType: String { self.request.headers.first("content-type") ?? "" }

  /// The name of the protocol, as in the description of ``NetworkProtocol``.
  var protocolName: String {
    if self.contentType.hasPrefix("application/grpc-web") { return "grpc-web" }
    return self.contentType.hasPrefix("application/grpc") ? "grpc" : "connect"
  }

  /// Sends the request's messages back in the request's protocol.
  func echo() {
    if self.protocolName == "connect", !self.contentType.hasPrefix("application/connect+") {
      let message = self.request.method == .get ? "\"got\"" : self.sentMessage
      self.reply(message)
      return
    }
    self.respond(headers: ["content-type": [self.contentType]])
    for message in self.sentMessages { self.sendMessage(message) }
    switch self.protocolName {
    case "grpc": self.end(trailers: ["grpc-status": ["0"]])
    case "grpc-web":
      let trailers = "grpc-status: 0\r\n"
      var frame = ByteBuffer(bytes: [0x80])
      frame.writeInteger(UInt32(trailers.utf8.count))
      frame.writeString(trailers)
      self.send(frame)
      self.end()
    default: self.endStream()
    }
  }

  /// A response with nothing but an error, in the request's protocol.
  fileprivate func reply(code: Code) {
    if self.protocolName == "connect" {
      self.reply(code)
    } else {
      self.respond(headers: ["content-type": [self.contentType], "grpc-status": ["\(code.rawValue)"]])
      self.end()
    }
  }
}
