internal import Connect
internal import ConnectTesting
internal import NIOCore
internal import SwiftProtobuf

/// A call as the service's methods see it. Only one task uses it.
final class TestCall<Input: Message, Output: Message> {
  private let context: ServerContext
  private let requests: ServerRequests<Input>
  private var iterator: ServerRequests<Input>.AsyncIterator
  private let responses: ServerResponses<Output>
  /// Messages received so far.
  private(set) var received: UInt32 = 0

  init(_ requests: ServerRequests<Input>, _ responses: ServerResponses<Output>, _ context: ServerContext) {
    self.context = context
    self.requests = requests
    self.iterator = requests.makeAsyncIterator()
    self.responses = responses
  }

  var version: HTTPConnectionInfo.Version { self.context.request.version }

  var seen: Connect_Test_V1_Seen {
    let request = self.context.request
    return .with {
      $0.httpVersion = request.version == .http2 ? "2" : "1.1"
      $0.httpMethod = request.method
      $0.path = request.path
      $0.headers = request.headers.asMessages
      if let timeout = self.context.timeout { $0.timeoutMs = timeout.wholeMilliseconds }
      $0.messageCount = self.received
      $0.codec = self.context.codecName
    }
  }

  /// The next message; nil after the last one.
  func receive() async throws -> Input? {
    guard let message = try await self.iterator.next() else { return nil }
    self.received += 1
    return message
  }

  /// The only message.
  func receiveOne() async throws -> Input {
    let message = try await self.requests.only()
    self.received = 1
    return message
  }

  /// Carries out the instruction's steps before the first message of the response.
  func begin(_ instruction: Connect_Test_V1_Instruction) async throws {
    self.context.responseHeaders.append(contentsOf: instruction.headers.asFields)
    self.context.responseTrailers.append(contentsOf: instruction.trailers.asFields)
    try await self.sleep(milliseconds: instruction.delayMs)
    try await self.context.sendHeaders()
  }

  /// Throws the failure that the instruction asks for.
  ///
  /// - Parameter sent: The number of messages sent; nil if there will be no more.
  func failIfInstructed(_ instruction: Connect_Test_V1_Instruction, sent: UInt32? = nil) throws {
    guard instruction.hasFailure else { return }
    let failure = instruction.failure
    if let sent, sent < failure.afterMessages { return }
    throw ConnectError(
      code: Code(rawValue: failure.code.rawValue).flatMap { $0 == .ok ? nil : $0 } ?? .unknown,
      message: failure.message,
      details: failure.details.map { detail in
        let type = detail.typeURL.split(separator: "/").last.map(String.init) ?? ""
        return ConnectError.Detail(type: type, value: ByteBuffer(bytes: detail.value))
      }
    )
  }

  func sleep(milliseconds: UInt32) async throws {
    guard milliseconds > 0 else { return }
    try await self.context.sleep(for: .milliseconds(milliseconds))
  }

  func send(_ message: Output) async throws {
    try await self.responses.send(message)
  }
}

extension Duration {
  /// Rounded down, but not to zero.
  fileprivate var wholeMilliseconds: Int64 {
    let milliseconds = Int64(clamping: self.attoseconds / 1_000_000_000_000_000)
    return self > .zero ? max(1, milliseconds) : milliseconds
  }
}

extension [Connect_Test_V1_Header] {
  fileprivate var asFields: [Headers.Field] {
    self.flatMap { header in header.values.map { Headers.Field(name: header.name, value: $0) } }
  }
}

extension Headers {
  /// The headers as messages; lines of the same name are joined into one.
  fileprivate var asMessages: [Connect_Test_V1_Header] {
    var messages: [Connect_Test_V1_Header] = []
    for field in self {
      if let index = messages.firstIndex(where: { $0.name == field.name }) {
        messages[index].values.append(field.value)
      } else {
        messages.append(.with { ($0.name, $0.values) = (field.name, [field.value]) })
      }
    }
    return messages
  }
}
