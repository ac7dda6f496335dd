internal import Connect
internal import Logging
internal import NIOCore

public struct HTTP2Configuration: Sendable {
  public init() {}
}

final class HTTP2Connection: ChannelInboundHandler, StreamConnection {
  typealias InboundIn = ByteBuffer

  init(
    channel: any Channel,
    scheme: String,
    authority: String,
    configuration: HTTP2Configuration,
    delegate: any StreamConnectionDelegate,
    logger: Logger
  ) {}

  func startStream(_ request: HTTPStreamRequest, handler: any HTTPStreamHandler) -> any HTTPStream {
    preconditionFailure("placeholder")
  }

  func drain() {}
  func close(failing error: ConnectError) {}
}
