import Connect
import ConnectTesting
import LoopbackServer
import NIOCore
import SwiftProtobuf
import XCTest

final class HTTPRequestTests: XCTestCase {
  /// Sees and changes requests before they are encoded.
  private final class Hook: Interceptor {
    private let change: @Sendable (inout HTTPRequest<Void>) -> Void

    init(_ change: @escaping @Sendable (inout HTTPRequest<Void>) -> Void) {
      self.change = change
    }

    func unaryMessageFunction<Input, Output>(
      _ method: MethodSpec<Input, Output>
    ) -> UnaryMessageFunction<Input, Output> {
      UnaryMessageFunction(requestFunction: { request, proceed in
        var head = request.with(())
        self.change(&head)
        proceed(.success(head.with(request.message)))
      })
    }
  }

  /// Changing headers in place does not copy the list.
  func testChangesAreInPlace() {
    var request = HTTPRequest(
      url: RequestURL(origin: Origin(scheme: .https, host: "a.test", port: 443), path: "/a/B"),
      contentType: "application/proto"
    )
    request.headers.reserveCapacity(8)
    request.headers.add(name: "a", value: "1")
    request.trailers.reserveCapacity(8)
    request.trailers.add(name: "a", value: "1")
    let places = [request.headers.place, request.trailers.place]
    request.headers.add(name: "b", value: "2")
    request.trailers.add(name: "b", value: "2")
    XCTAssertEqual([request.headers.place, request.trailers.place], places)
    XCTAssertEqual(request.headers, ["a": ["1"], "b": ["2"]])
  }

  /// A change in place that throws leaves the headers as they are then.
  func testChangesThatThrow() {
    func change(_ headers: inout Headers) throws {
      headers.add(name: "b", value: "2")
      throw ConnectError(code: .aborted)
    }
    var request = HTTPRequest(
      url: RequestURL(origin: Origin(scheme: .https, host: "a.test", port: 443), path: "/a/B"),
      contentType: "application/proto",
      headers: ["a": ["1"]]
    )
    XCTAssertThrowsError(try change(&request.headers))
    XCTAssertEqual(request.headers, ["a": ["1"], "b": ["2"]])
  }

  /// A newly created request inherits the client's identity, also if it has a context and says whether it is GET.
  func testWhoTheClientIs() async {
    let seen = Box<[UInt64?]>([])
    let client = ProtocolClient.scripted(
      .echo(),
      interceptors: [
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.requestFunction = { request, proceed in
            var other = HTTPRequest(
              url: request.url,
              contentType: request.contentType,
              message: request.message,
              context: request.context
            )
            other.isGET = request.isGET
            proceed(.success(other))
          }
        },
        TestInterceptor.make { interceptor in
          interceptor.unaryBytes.requestFunction = { request, proceed in
            seen.value = [request.clientIdentity]
            proceed(.success(request))
          }
        },
      ]
    )
    _ = await client.unary(.unary, "x")
    XCTAssertNotNil(client.clientIdentity)
    XCTAssertEqual(seen.value, [client.clientIdentity])
  }

  /// A request that a hook makes anew keeps what belongs to the call.
  func testWhatBelongsToTheCall() async throws {
    let seen = Observed<[String]>([])
    let note: @Sendable (HTTPRequest<Void>) -> Void = { request in
      let timeout = request.timeout.map { "\($0)" } ?? "none"
      seen.update { $0.append("\(request.encodesDeterministically) \(timeout)") }
    }
    let transport = InMemoryTransport(executor: VirtualExecutor())
    transport.onUnary(TestMethods.echo) { _, _ in .init() }
    let client = ProtocolClient(
      httpClient: transport,
      config: ProtocolClientConfig(
        host: "https://api.test",
        interceptors: [
          { _ in
            Hook { request in
              note(request)
              request.encodesDeterministically = true
            }
          },
          { _ in
            Hook { request in
              request = HTTPRequest(
                url: request.url,
                contentType: request.contentType,
                headers: request.headers
              )
            }
          },
          { _ in Hook { note($0) } },
        ],
        timeout: .seconds(7)
      )
    )
    _ = try await client.unary(TestMethods.echo, .init()).get()
    _ = try await client.unary(TestMethods.echo, .init(), options: CallOptions(timeout: .seconds(5))).get()
    XCTAssertEqual(
      seen.value,
      ["false 7.0 seconds", "true 7.0 seconds", "false 5.0 seconds", "true 5.0 seconds"]
    )
  }

  /// The codec is told what a hook has asked for.
  func testDeterministicBytes() async throws {
    let transport = InMemoryTransport(executor: VirtualExecutor())
    transport.onUnary(TestMethods.echo) { _, _ in .init() }
    for asks in [false, true] {
      let codec = NotingCodec()
      let client = ProtocolClient(
        httpClient: transport,
        config: ProtocolClientConfig(
          host: "https://api.test",
          codec: codec,
          interceptors: [{ _ in Hook { if asks { $0.encodesDeterministically = true } } }]
        )
      )
      _ = try await client.unary(TestMethods.echo, .init()).get()
      XCTAssertEqual(codec.asked.value, [asks])
    }
  }
}

/// Keeps whether it was asked for the same bytes each time.
private final class NotingCodec: Codec {
  let asked = Observed<[Bool]>([])
  private let base = ProtoCodec()

  var name: String { self.base.name }

  func encode<Message: Sendable>(
    _ message: Message,
    as coding: MessageCoding<Message>,
    deterministic: Bool
  ) throws -> ByteBuffer {
    self.asked.update { $0.append(deterministic) }
    return try self.base.encode(message, as: coding, deterministic: deterministic)
  }

  func decode<Message: Sendable>(_ bytes: ByteBuffer, as coding: MessageCoding<Message>) throws -> Message {
    try self.base.decode(bytes, as: coding)
  }
}
