// Extracted from Sources/ConnectInterceptors/ConnectInterceptors.docc/WireInterceptors.md by `make generate`.

import Connect
import ConnectInterceptors
import ConnectNIO
import NIOCore

final class DigestInterceptor: WireInterceptor {
  private let digest: @Sendable (ByteBuffer) -> String
  private var receivedBytes = 0

  init(digest: @escaping @Sendable (ByteBuffer) -> String) {
    self.digest = digest
  }

  func wireFunction() -> WireFunction {
    WireFunction(
      requestHeadFunction: { request, proceed in
        var request = request
        if case .complete(let body) = request.body {
          request.headers["content-digest"] = ["sha-256=:\(self.digest(body)):"]
        }
        proceed(request)
      },
      responseChunkFunction: { bytes, proceed in
        self.receivedBytes += bytes.readableBytes
        proceed(bytes)
      },
      endFunction: { outcome in print("\(self.receivedBytes) bytes, \(outcome)") }
    )
  }
}

private func ConnectInterceptors_WireInterceptors_1() async throws {
  let tap = WireTap(writingTo: 2)
  let transport = WireHTTPClient(
    NIOHTTPClient(),
    interceptors: [
      { _ in RequestSigner(keyID: "k1", secret: Array("from a vault".utf8)) },
      { exchange in WireTapInterceptor(tap, exchange) },
    ]
  )
  let client = ProtocolClient(httpClient: transport, config: ProtocolClientConfig(host: "https://api.example.com"))
  _ = tap
  _ = transport
  _ = client
}

private func ConnectInterceptors_WireInterceptors_2() async throws {
  let sha256: @Sendable (ByteBuffer) -> String = given()
  let factory: WireInterceptorFactory = { _ in DigestInterceptor(digest: sha256) }
  _ = sha256
  _ = factory
}

private func ConnectInterceptors_WireInterceptors_3() async throws {
  let fetchSecret: @Sendable () async throws -> [UInt8] = given()
  let signed = WireHTTPClient(
    NIOHTTPClient(),
    interceptors: [
      { _ in
        RequestSigner(
          options: .init(streamedBodies: .gathered(maximumBytes: 1 << 20)),
          key: { RequestSigner.Key(id: "k1", secret: try await fetchSecret()) }
        )
      }
    ]
  )
  _ = fetchSecret
  _ = signed
}

private func ConnectInterceptors_WireInterceptors_4() async throws {
  let lines = WireTap(lines: { text in print(text, terminator: "") })
  let records = WireTap(.init(bodyBytes: 0), records: { record in await Task.yield() })
  _ = lines
  _ = records
}
