import Connect
import ConnectTesting
import NIOCore
import XCTest

/// Message hooks of a method whose messages are bytes: `proceed` with bytes is for byte hooks, too, which have no boxes.
final class ByteMessageHooksTests: XCTestCase {
  private static let method = MethodSpec<ByteBuffer, ByteBuffer>(
    info: MethodInfo(path: "/test.Bytes/Echo", streamType: .bidirectionalStream),
    input: ByteMessageHooksTests.coding,
    output: ByteMessageHooksTests.coding
  )

  private static var coding: MessageCoding<ByteBuffer> {
    MessageCoding(
      binary: nil,
      json: .init(encode: { bytes, _ in Self.reversed(bytes) }, decode: { bytes, _ in Self.reversed(bytes) })
    )
  }

  /// What the coding does, so that a message which passes it by is found out.
  private static func reversed(_ bytes: ByteBuffer) -> ByteBuffer {
    ByteBuffer(bytes: bytes.readableBytesView.reversed())
  }

  private struct Adding: Interceptor {
    let name: String
    let isByteHook: Bool

    private var hooks: StreamHooks<ByteBuffer, ByteBuffer> {
      let name = self.name
      return StreamHooks(
        requestMessageFunction: { message, proceed in
          proceed(ByteBuffer(string: String(buffer: message) + name))
        },
        streamResultFunction: { result, proceed in
          guard case .message(let message) = result else { return proceed(result) }
          proceed(.message(ByteBuffer(string: String(buffer: message) + name.lowercased())))
        }
      )
    }

    func streamMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> StreamMessageFunction<Input, Output> {
      guard !self.isByteHook, let hooks = self.hooks as? StreamHooks<Input, Output> else { return .init() }
      return hooks
    }

    func streamFunction() -> StreamFunction { self.isByteHook ? self.hooks : StreamFunction() }
  }

  func testMessagesPassTheCodecAndAllHooks() async throws {
    let client = ProtocolClient.scripted(
      ScriptedTransport(StreamChainTests.echo),
      interceptors: [
        { _ in Adding(name: "A", isByteHook: false) },
        { _ in Adding(name: "B", isByteHook: false) },
        { _ in Adding(name: "X", isByteHook: true) },
      ]
    )
    let stream = client.bidirectionalStream(Self.method)
    try await stream.send(ByteBuffer(string: "m"))
    stream.finish()
    var messages: [String] = []
    for try await message in stream.messages { messages.append(String(buffer: message)) }
    // mAB, reversed BAm, then BAmX on the wire; BAmXx decoded is xXmAB.
    XCTAssertEqual(messages, ["xXmABba"])
  }
}
