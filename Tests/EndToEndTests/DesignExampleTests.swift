import Connect
import ConnectNIO
import LoopbackServer
import SwiftProtobuf
import XCTest

private func fetchUserToken(forPath path: String, completion: @escaping @Sendable (String?) -> Void) {
  Task.detached { completion(path.hasSuffix("/Echo") ? "token for \(path)" : nil) }
}

// The program that users know from the interceptor guide, as written.
// swift-format-ignore
final class ExampleAuthInterceptor: Interceptor {
    init(config: ProtocolClientConfig) {}

    func unaryFunction() -> UnaryFunction {
        UnaryFunction(
            requestFunction: { request, proceed in
                guard request.url.host == "demo.connectrpc.com" else {
                    proceed(.success(request)); return
                }
                fetchUserToken(forPath: request.url.path) { token in
                    if let token {
                        var headers = request.headers
                        headers["Authorization"] = ["Bearer \(token)"]
                        proceed(.success(HTTPRequest(
                            url: request.url, contentType: request.contentType, headers: headers,
                            message: request.message, trailers: request.trailers)))
                    } else {
                        proceed(.failure(ConnectError(
                            code: .unknown, message: "auth token fetch failed",
                            exception: nil, details: [], metadata: [:])))
                    }
                }
            },
            responseFunction: { response, proceed in proceed(response) },
            responseMetricsFunction: { metrics, proceed in proceed(metrics) }
        )
    }

    func streamFunction() -> StreamFunction {
        StreamFunction(
            requestFunction: { request, proceed in proceed(.success(request)) },
            requestDataFunction: { data, proceed in proceed(data) },
            streamResultFunction: { result, proceed in proceed(result) }
        )
    }
}

// swift-format-ignore
private let client = ProtocolClient(
    httpClient: NIOHTTPClient(),
    config: ProtocolClientConfig(
        host: "https://demo.connectrpc.com",
        networkProtocol: .connect,                 // .grpc, .grpcWeb
        codec: ProtoCodec(),                       // JSONCodec()
        interceptors: [{ ExampleAuthInterceptor(config: $0) }]
    )
)

/// Leads every origin to one server.
private struct Redirection: HTTPClientInterface {
  let base: NIOHTTPClient
  let target: Origin

  func endpoint(
    for origin: Origin,
    on executor: (any CallExecutor)?,
    requiresHTTP2: Bool
  ) throws(ConnectError) -> any HTTPEndpoint {
    try self.base.endpoint(for: self.target, on: executor, requiresHTTP2: requiresHTTP2)
  }
}

final class DesignExampleTests: XCTestCase {
  private typealias Echo = MethodSpec<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>

  func testTheExampleOfTheDesign() async throws {
    let server = try await LoopbackServer.start()
    let transport = NIOHTTPClient()
    let redirected = ProtocolClient(
      httpClient: Redirection(
        base: transport,
        target: Origin(scheme: .http, host: "127.0.0.1", port: server.port)
      ),
      config: client.config
    )
    let path = "/connect.test.v1.TestService/Echo"
    let echo = Echo(path: path, streamType: .unary)
    let request = Connect_Test_V1_EchoRequest.with { $0.payload.text = "ß" }

    let response = await redirected.unary(echo, request)
    XCTAssertEqual(try response.get().payload.text, "ß")
    let record = try await server.endedRequest(to: path)
    XCTAssertEqual(record.headers["authorization"], ["Bearer token for \(path)"])

    let refused = await redirected.unary(
      Echo(path: "/connect.test.v1.TestService/Other", streamType: .unary),
      request
    )
    XCTAssertEqual(refused.error?.code, .unknown)
    XCTAssertEqual(refused.error?.message, "auth token fetch failed")

    await transport.shutdown()
    await server.stop()
  }
}
