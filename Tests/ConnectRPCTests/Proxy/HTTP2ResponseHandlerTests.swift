import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import XCTest

@testable import connectrpc

final class HTTP2ResponseHandlerTests: XCTestCase {
  private typealias Payload = HTTP2Frame.FramePayload

  private func headers(_ fields: [(String, String)]) -> Payload {
    .headers(.init(headers: HPACKHeaders(fields)))
  }

  private func data(_ text: String, isEnd: Bool) -> Payload {
    .data(.init(data: .byteBuffer(ByteBuffer(string: text)), endStream: isEnd))
  }

  /// The frames that go out, in short.
  private func written(_ payloads: [Payload], thenReset: Bool = false) throws -> [String] {
    let channel = EmbeddedChannel(handler: HTTP2ResponseHandler())
    for payload in payloads { channel.write(payload, promise: nil) }
    channel.flush()
    if thenReset {
      try channel.triggerUserOutboundEvent(HTTP2ResponseHandler.Reset(code: 8)).wait()
    }
    var frames: [String] = []
    while let payload = try channel.readOutbound(as: Payload.self) {
      switch payload {
      case .headers(let headers): frames.append("headers\(headers.endStream ? ", end" : "")")
      case .data(let data): frames.append("data \(data.data.readableBytes)\(data.endStream ? ", end" : "")")
      case .rstStream(let code): frames.append("reset \(code.networkCode)")
      default: frames.append("other")
      }
    }
    _ = try channel.finish()
    return frames
  }

  func testAStatusInTheHeadersEndsTheStream() throws {
    let status = self.headers([(":status", "200"), ("grpc-status", "5")])
    XCTAssertEqual(try self.written([status, self.data("", isEnd: true)]), ["headers, end"])
    XCTAssertEqual(try self.written([status, self.data("x", isEnd: true)]), ["headers", "data 1, end"])
    XCTAssertEqual(try self.written([status], thenReset: true), ["headers", "reset 8"])
  }

  func testOtherResponsesPassAsTheyAre() throws {
    let head = self.headers([(":status", "200")])
    XCTAssertEqual(try self.written([head]), ["headers"])
    XCTAssertEqual(try self.written([head, self.data("", isEnd: true)]), ["headers", "data 0, end"])
  }
}
