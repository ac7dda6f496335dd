import Connect
import ConnectTesting
import NIOCore
import XCTest

/// A header whose name ends with `-bin` has base64. A value that is none fails the call before anything is sent, whoever
/// has set it.
final class BinaryHeaderTests: XCTestCase {
  private static let protocols: [NetworkProtocol] = [.connect, .grpc, .grpcWeb, .grpcWebText]
  private static let bad: Headers = ["x-bin": ["%%%"]]

  /// The ways to set a header, each with a name: the options of a call, and interceptors.
  private static func ways(_ headers: Headers) -> [(name: String, CallOptions, [InterceptorFactory])] {
    [
      ("options", CallOptions(headers: headers), []),
      (
        "message hooks", CallOptions(),
        [
          TestInterceptor.make { interceptor in
            interceptor.unaryMessages.requestFunction = { request, proceed in
              var request = request
              request.headers.append(contentsOf: headers)
              proceed(.success(request))
            }
            interceptor.streamMessages.requestFunction = { request, proceed in
              var request = request
              request.headers.append(contentsOf: headers)
              proceed(.success(request))
            }
          }
        ]
      ),
      (
        "byte hooks", CallOptions(),
        [
          TestInterceptor.make { interceptor in
            interceptor.unaryBytes.requestFunction = { request, proceed in
              var request = request
              request.headers.append(contentsOf: headers)
              proceed(.success(request))
            }
            interceptor.streamBytes.requestFunction = { request, proceed in
              var request = request
              request.headers.append(contentsOf: headers)
              proceed(.success(request))
            }
          }
        ]
      ),
      (
        "trailers", CallOptions(),
        [
          TestInterceptor.make { interceptor in
            interceptor.unaryBytes.requestFunction = { request, proceed in
              var request = request
              request.trailers.append(contentsOf: headers)
              proceed(.success(request))
            }
            interceptor.streamBytes.requestFunction = { request, proceed in
              var request = request
              request.trailers.append(contentsOf: headers)
              proceed(.success(request))
            }
          }
        ]
      ),
    ]
  }

  func testInvalidValuesAreNotSent() async {
    for networkProtocol in Self.protocols {
      for (name, options, interceptors) in Self.ways(Self.bad) {
        let transport = ScriptedTransport { $0.echo() }
        let client = ProtocolClient.scripted(transport, interceptors: interceptors) {
          $0.networkProtocol = networkProtocol
        }
        let response = await client.unary(.unary, "x", options: options)
        self.check(response.error, "\(networkProtocol), \(name), unary")
        let stream = client.bidirectionalStream(.bidirectional, options: options)
        try? await stream.send("x")
        stream.finish()
        var error: ConnectError?
        for await result in stream.results {
          if case .complete(_, let failure, _) = result { error = failure }
        }
        self.check(error, "\(networkProtocol), \(name), stream")
        XCTAssertEqual(transport.streams.count, 0, "\(networkProtocol), \(name)")
      }
    }
  }

  private func check(_ error: ConnectError?, _ what: String) {
    XCTAssertEqual(error?.code, .invalidArgument, what)
    XCTAssertTrue(
      error?.message?.contains("'x-bin' is no base64") == true,
      "\(what): \(error?.message ?? "none")"
    )
  }

  func testValidValuesAreSentAsTheyAre() async {
    let values = ["AAEC", "AA", "AA==", "AA==,AAE=", ""]
    for networkProtocol in Self.protocols {
      let transport = ScriptedTransport { $0.echo() }
      let client = ProtocolClient.scripted(transport) { $0.networkProtocol = networkProtocol }
      _ = await client.unary(.unary, "x", options: CallOptions(headers: ["x-bin": values, "xbin": ["%%%"]]))
      XCTAssertEqual(transport.streams.first?.request.headers["x-bin"], values, "\(networkProtocol)")
      XCTAssertEqual(transport.streams.first?.request.headers["xbin"], ["%%%"], "\(networkProtocol)")
    }
  }
}
