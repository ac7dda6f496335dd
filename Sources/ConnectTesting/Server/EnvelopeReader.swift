internal import Connect
internal import NIOCore
internal import Synchronization

/// Cuts a request's body into its messages, and decompresses them.
final class EnvelopeReader: Sendable {
  private struct State {
    var envelopes = EnvelopeDecoder(maximumMessageSize: ServerOptions.messageLimit)
    /// For a body in base64.
    var base64: Base64StreamDecoder?
  }

  private let exchange: any ServerExchange
  private let options: ServerOptions
  private let encoding: String?
  private let state: Mutex<State>

  /// - Parameters:
  ///   - encoding: What the request's headers say of compressed messages.
  ///   - isText: Whether the body is base64.
  init(_ exchange: any ServerExchange, options: ServerOptions, encoding: String?, isText: Bool = false) {
    self.exchange = exchange
    self.options = options
    self.encoding = encoding
    self.state = Mutex(State(base64: isText ? Base64StreamDecoder() : nil))
  }

  /// The next message; nil after the last one. To be called by one task at a time.
  func next() async throws -> ByteBuffer? {
    while true {
      if let envelope = try self.nextEnvelope() { return try self.message(of: envelope) }
      guard let chunk = try await self.exchange.nextChunk() else { break }
      self.state.withLock { state in
        state.envelopes.receive(state.base64?.decode(chunk) ?? chunk)
      }
    }
    let isWhole = self.state.withLock { state in
      if let rest = state.base64?.finish() { state.envelopes.receive(rest) }
      return state.envelopes.bufferedByteCount == 0 && state.base64?.isValid != false
    }
    guard isWhole else {
      throw ConnectError(code: .invalidArgument, message: "the request ends within an envelope")
    }
    return nil
  }

  private func nextEnvelope() throws(ConnectError) -> Envelope? {
    do {
      return try self.state.withLock { try $0.envelopes.next() }
    } catch {
      throw .tooLargeForServer
    }
  }

  private func message(of envelope: Envelope) throws(ConnectError) -> ByteBuffer {
    switch envelope.flags {
    case 0: return envelope.message
    case Envelope.compressedFlag:
      return try self.options.decompress(envelope.message, encoding: self.encoding)
    default:
      throw ConnectError(
        code: .invalidArgument,
        message: "unexpected envelope flags \(envelope.flags)"
      )
    }
  }
}

extension ServerOptions {
  /// Decompresses a message.
  ///
  /// - Throws: ``ConnectError``: `unimplemented` for an unknown encoding, `invalid_argument` for bytes that are not
  ///   in it, `resource_exhausted` for a message over the limit.
  func decompress(_ bytes: ByteBuffer, encoding: String?) throws(ConnectError) -> ByteBuffer {
    guard let pool = try self.requestCompression(named: encoding), bytes.readableBytes > 0 else {
      return bytes
    }
    do {
      return try pool.decompress(bytes, maximumSize: Self.messageLimit)
    } catch let error as ConnectError where error.code == .resourceExhausted {
      throw .tooLargeForServer
    } catch {
      throw ConnectError(code: .invalidArgument, message: "message does not decompress: \(error)")
    }
  }
}

extension ConnectError {
  /// The server's limit, whatever the decoder says of a client's.
  fileprivate static var tooLargeForServer: ConnectError {
    ConnectError(
      code: .resourceExhausted,
      message: "message is larger than \(ServerOptions.messageLimit) bytes"
    )
  }
}
