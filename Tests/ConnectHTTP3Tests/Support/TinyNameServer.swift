internal import ConnectChannels
internal import NIOCore
internal import NIOPosix

/// A DNS server on 127.0.0.1 over UDP: every name has the address 127.0.0.1, and one name has an HTTPS record.
struct TinyNameServer {
  let address: EndpointAddress
  private let channel: any Channel

  /// - Parameters:
  ///   - name: The name with the HTTPS record.
  ///   - record: The record's content.
  init(name: String, record: [UInt8]) async throws {
    self.channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Handler(name: name, record: record))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    self.address = EndpointAddress("127.0.0.1:\(self.channel.localAddress?.port ?? 0)") ?? .unix(path: "")
  }

  func stop() async throws { try await self.channel.close() }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    typealias OutboundOut = AddressedEnvelope<ByteBuffer>

    private let name: String
    private let record: [UInt8]

    init(name: String, record: [UInt8]) {
      self.name = name
      self.record = record
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let datagram = self.unwrapInboundIn(data)
      let query = Array(datagram.data.readableBytesView)
      guard let question = DNSMessage(decoding: query)?.questions.first else { return }
      let data: [UInt8]? =
        switch question.type {
        case .a: [127, 0, 0, 1]
        case .https where question.name.description == self.name: self.record
        default: nil
        }
      // The header, then the question of the query.
      let end = 12 + question.name.description.utf8.count + 2 + 4
      var response = Array(query.prefix(2)) + [0x81, 0x80, 0, 1, 0, data == nil ? 0 : 1, 0, 0, 0, 0]
      response += query[12..<end]
      if let data {
        response += [0xc0, 12] + query[(end - 4)..<end] + [0, 0, 0, 60, 0, UInt8(data.count)] + data
      }
      let answer = AddressedEnvelope(
        remoteAddress: datagram.remoteAddress,
        data: ByteBuffer(bytes: response)
      )
      context.writeAndFlush(self.wrapOutboundOut(answer), promise: nil)
    }
  }
}
