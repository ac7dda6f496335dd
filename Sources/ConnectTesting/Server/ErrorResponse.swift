package import Connect
package import NIOCore

/// A response that is nothing but an error, in the protocol of the request that it answers.
package struct ErrorResponse: Sendable {
  package var status: Int
  package var headers: Headers
  package var body: ByteBuffer
  package var trailers: Headers

  /// - Parameter contentType: The request's content type; nil for a GET, which is a unary call of Connect.
  package init(_ error: ConnectError, to contentType: String?) throws {
    let format = BodyFormat(contentType: contentType)
    self.status = 200
    self.headers = Headers()
    self.headers.add(name: "content-type", value: contentType ?? "application/json")
    self.body = ByteBuffer()
    self.trailers = [:]
    switch (format.networkProtocol, format.framing) {
    case ("connect", .whole):
      self.status = error.code.serverHTTPStatus
      self.headers = ["content-type": ["application/json"]]
      self.body = try ByteBuffer(json: ConnectErrorBody(error))
    case ("connect", _): self.body = try ConnectStreamCall.end(error, [:])
    case ("grpc", _): self.trailers = GRPCCall.status(error, [:])
    default:
      self.body = GRPCCall.envelope(of: GRPCCall.status(error, [:]))
      if format.framing == .text {
        self.body = Base64.encode(self.body, alphabet: .standard, isPadded: true)
      }
    }
  }
}
