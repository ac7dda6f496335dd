internal import ConnectNIO
internal import NIOCore

/// The UDP socket of a connection: writes what the session has put out.
///
/// Confined to the connection's event loop.
final class HTTP3Socket {
  private let state: ConnectionState
  private let remoteAddress: SocketAddress
  /// Nil while the connection is in no pipeline.
  var context: ChannelHandlerContext?
  /// Whether the system was given many datagrams in one write.
  private var hasCutDatagrams = false
  /// How many probes of the path wait to be written.
  private var unsentProbes = 0
  private var readCount = 0

  init(_ state: ConnectionState, to remoteAddress: SocketAddress) {
    self.state = state
    self.remoteAddress = remoteAddress
  }

  /// Something was read from the channel: calls `body` with each datagram, and with its two bits of explicit congestion
  /// notification.
  func didRead(
    _ envelope: AddressedEnvelope<ByteBuffer>,
    _ body: (UnsafeRawBufferPointer, _ ecn: UInt32) -> Void
  ) {
    self.readCount += 1
    UDPSocket.coalesceDatagrams(of: self.state.channel, afterReads: self.readCount)
    let ecn = envelope.metadata?.ecnState.bits ?? 0
    envelope.data.withUnsafeReadableBytes { bytes in
      // The system may have put several datagrams into one buffer (generic receive offload).
      let size = max(envelope.metadata?.segmentSize ?? bytes.count, 1)
      var rest = bytes[...]
      while !rest.isEmpty {
        body(UnsafeRawBufferPointer(rebasing: rest.prefix(size)), ecn)
        rest = rest.dropFirst(size)
      }
    }
  }

  /// - Returns: Whether there was anything to write.
  func write(_ items: [HTTP3Output.Datagrams]) -> Bool {
    guard !items.isEmpty else { return false }
    for item in items { self.write(item) }
    self.context?.flush()
    return true
  }

  private func write(_ item: HTTP3Output.Datagrams) {
    guard !item.isProbe else { return self.writeProbe(item) }
    let metadata = item.metadata
    guard item.segmentSize != nil, !self.hasCutDatagrams else { return self.write(item.bytes, metadata) }
    // If the system cuts the first ones, it cuts all.
    self.hasCutDatagrams = true
    let promise = self.state.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenFailure { error in
      SegmentationOffload.didFail(error)
      self.state.channelError = self.state.channelError ?? error
    }
    self.write(item.bytes, metadata, promise: promise)
  }

  /// Writes a probe: a datagram that tries whether the path takes larger ones. If the system refuses it, nobody
  /// acknowledges it, as on a path that drops it.
  private func writeProbe(_ item: HTTP3Output.Datagrams) {
    // Earlier datagrams are flushed first: what is flushed together is sent with the same options of the socket.
    self.context?.flush()
    UDPSocket.willSendProbe(on: self.state.channel)
    self.unsentProbes += 1
    let promise = self.state.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { _ in
      self.unsentProbes -= 1
      if self.unsentProbes == 0 { UDPSocket.ignoreReports(on: self.state.channel) }
    }
    self.write(item.bytes, item.metadata, promise: promise)
    self.context?.flush()
  }

  func write(
    _ bytes: ByteBuffer,
    _ metadata: AddressedEnvelope<ByteBuffer>.Metadata? = nil,
    promise: EventLoopPromise<Void>? = nil
  ) {
    guard let context = self.context else {
      promise?.succeed()
      return
    }
    let envelope = AddressedEnvelope(remoteAddress: self.remoteAddress, data: bytes, metadata: metadata)
    context.write(NIOAny(envelope), promise: promise)
  }
}

extension HTTP3Output.Datagrams {
  fileprivate var metadata: AddressedEnvelope<ByteBuffer>.Metadata {
    AddressedEnvelope<ByteBuffer>.Metadata(
      ecnState: NIOExplicitCongestionNotificationState(bits: self.ecn),
      packetInfo: nil,
      segmentSize: self.segmentSize
    )
  }
}

extension NIOExplicitCongestionNotificationState {
  /// - Parameter bits: As in the header of IP (RFC 3168, section 5).
  fileprivate init(bits: UInt32) {
    self =
      switch bits & 3 {
      case 1: .transportCapableFlag1
      case 2: .transportCapableFlag0
      case 3: .congestionExperienced
      default: .transportNotCapable
      }
  }

  fileprivate var bits: UInt32 {
    switch self {
    case .transportNotCapable: 0
    case .transportCapableFlag1: 1
    case .transportCapableFlag0: 2
    case .congestionExperienced: 3
    }
  }
}
