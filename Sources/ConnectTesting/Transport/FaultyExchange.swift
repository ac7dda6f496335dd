internal import Connect
internal import NIOCore
internal import Synchronization

/// An exchange that injects faults into its response.
final class FaultyExchange: FailableExchange {
  private let base: InMemoryExchange
  private let faults: [InMemoryTransport.Fault]
  /// Bytes of the body sent so far.
  private let position = Mutex(0)

  init(_ base: InMemoryExchange, faults: [InMemoryTransport.Fault]) {
    self.base = base
    self.faults = faults
  }

  func sendHead(status: Int, headers: Headers) async throws {
    if self.faults.contains(.stallBeforeHeaders) { try await self.stall() }
    try await self.base.sendHead(status: status, headers: headers)
  }

  func sendBody(_ bytes: ByteBuffer) async throws {
    var rest = bytes
    while rest.readableBytes > 0 {
      try await self.breakIfDue()
      let position = self.position.withLock { $0 }
      let next = self.faults.compactMap { $0.nextOffset(after: position) }.min() ?? .max
      guard let piece = rest.readSlice(length: min(rest.readableBytes, next - position)) else { return }
      try await self.base.sendBody(piece)
      self.position.withLock { $0 += piece.readableBytes }
    }
  }

  func sendEnd(_ bytes: ByteBuffer, trailers: Headers) async throws {
    let hasTrailers = !self.faults.contains(.dropTrailers)
    if hasTrailers { try await self.sendBody(bytes) }
    try await self.breakIfDue()
    try await self.base.sendEnd(ByteBuffer(), trailers: hasTrailers ? trailers : [:])
  }

  /// Stalls or resets, if enough was sent for that.
  private func breakIfDue() async throws {
    let position = self.position.withLock { $0 }
    for fault in self.faults {
      switch fault {
      case .stall(let offset) where position >= offset: try await self.stall()
      case .reset(let offset, let code) where position >= offset:
        await self.base.reset(code: code)
        throw ConnectError(code: .canceled, message: "the stream was reset on purpose")
      default: break
      }
    }
  }

  private func stall() async throws {
    await self.base.waitUntilClosed()
    throw ConnectError(code: .canceled, message: "the client has gone away")
  }

  // MARK: As it is

  var head: ServerRequestHead { self.base.head }

  func nextChunk() async throws -> ByteBuffer? { try await self.base.nextChunk() }

  func sleep(for duration: Duration) async throws { try await self.base.sleep(for: duration) }

  func setDeadline(in duration: Duration) { self.base.setDeadline(in: duration) }

  func reset(code: UInt32) async { await self.base.reset(code: code) }

  func failLater(_ failure: HTTPStreamFailure) { self.base.failLater(failure) }

  func waitUntilClosed() async { await self.base.waitUntilClosed() }
}
