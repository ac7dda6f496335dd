internal import Connect
internal import ConnectTesting
internal import NIOCore

/// The functions that the server of the RPC protocols needs.
extension Exchange: ServerExchange {
  func sendHead(status: Int, headers: Headers) async throws {
    try await self.sendHead(status: status, headers: HeaderFields(headers))
  }

  func sendEnd(_ bytes: ByteBuffer, trailers: Headers) async throws {
    try await self.sendEnd(bytes, trailers: HeaderFields(trailers))
  }

  func respond(status: Int, headers: Headers, body: ByteBuffer) async throws {
    try await self.respond(status: status, headers: HeaderFields(headers), body: body)
  }

  func sleep(for duration: Duration) async throws {
    try await self.sleep(TimeAmount(duration))
  }

  func setDeadline(in duration: Duration) {
    self.setDeadline(in: TimeAmount(duration))
  }

  func reset(code: UInt32) async {
    await self.abort(code: code)
  }
}

extension ServerRequestHead {
  init(_ request: RequestRecord) {
    self.init(
      version: request.version == .http2 ? .http2 : .http1,
      method: request.method,
      path: request.path,
      query: request.query,
      headers: Headers(request.headers.fields.map { Headers.Field(name: $0.name, value: $0.value) })
    )
  }
}

extension HeaderFields {
  init(_ headers: Headers) {
    self.init()
    for field in headers { self.add(field.name, field.value) }
  }
}
