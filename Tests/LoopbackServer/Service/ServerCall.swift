internal import NIOCore
internal import SwiftProtobuf

/// A call with the types of its messages, as the service's methods see it.
final class ServerCall<Input: Message, Output: Message> {
  private let wire: any WireCall
  /// Messages received so far.
  private(set) var received: UInt32 = 0

  init(_ wire: any WireCall) {
    self.wire = wire
  }

  var version: RequestRecord.Version { self.wire.exchange.request.version }

  var seen: Connect_Test_V1_Seen {
    let request = self.wire.exchange.request
    return .with {
      $0.httpVersion = request.version.rawValue
      $0.httpMethod = request.method
      $0.path = request.path
      $0.headers = request.headers.asMessages
      if let timeout = self.wire.timeout { $0.timeoutMs = timeout }
      $0.messageCount = self.received
      $0.codec = self.wire.codec.rawValue
    }
  }

  /// The next message; nil after the last one.
  func receive() async throws -> Input? {
    guard let bytes = try await self.wire.receive() else { return nil }
    self.received += 1
    return try self.wire.codec.decode(bytes)
  }

  /// The only message.
  func receiveOne() async throws -> Input {
    guard let message = try await self.receive() else {
      throw RPCFailure(.unimplemented, "the request has no message")
    }
    guard try await self.wire.receive() == nil else {
      throw RPCFailure(.unimplemented, "the request has more than one message")
    }
    return message
  }

  /// Does what is to be done before the first message of the response.
  func begin(_ instruction: Connect_Test_V1_Instruction) async throws {
    self.wire.headers.add(instruction.headers)
    self.wire.trailers.add(instruction.trailers)
    try await self.sleep(milliseconds: instruction.delayMs)
    try await self.wire.sendHeaders()
  }

  /// Throws the failure that the instruction asks for.
  ///
  /// - Parameter sent: How many messages were sent; nil means that there will be no more.
  func failIfInstructed(_ instruction: Connect_Test_V1_Instruction, sent: UInt32? = nil) throws {
    guard instruction.hasFailure else { return }
    let failure = instruction.failure
    if let sent, sent < failure.afterMessages { return }
    throw RPCFailure(failure.code, failure.message, details: failure.details)
  }

  func sleep(milliseconds: UInt32) async throws {
    guard milliseconds > 0 else { return }
    try await self.wire.exchange.sleep(.milliseconds(Int64(milliseconds)))
  }

  func send(_ message: Output) async throws {
    try await self.wire.send(try self.wire.codec.encode(message))
  }
}
