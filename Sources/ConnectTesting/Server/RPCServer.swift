internal import Connect
internal import NIOCore

/// Serves methods over Connect, gRPC and gRPC-Web, on whatever carries HTTP exchanges.
package struct RPCServer: Sendable {
  /// Why a request is answered with a plain HTTP status.
  private struct Rejection: Error {
    var status: Int
    var headers: Headers = [:]
  }

  private let options: ServerOptions
  private let find: @Sendable (ServerRequestHead) -> ServerMethod?

  /// - Parameter find: The method that a request asks for; nil if there is no such method.
  package init(
    options: ServerOptions = ServerOptions(),
    find: @escaping @Sendable (ServerRequestHead) -> ServerMethod?
  ) {
    self.options = options
    self.find = find
  }

  /// Finds the method and the wire protocol of a request, and serves it.
  package func serve(_ exchange: any ServerExchange) async {
    do {
      let (method, wire) = try self.route(exchange)
      if let timeout = wire.timeout { exchange.setDeadline(in: timeout) }
      do {
        let version = exchange.head.headers.first("connect-protocol-version")
        if let version, version != "1" {
          throw ConnectError(
            code: .invalidArgument,
            message: "connect-protocol-version must be \"1\": got \"\(version)\""
          )
        }
        try await method.serve(wire)
        try await wire.finish(nil)
      } catch {
        // If the client is gone this does nothing but throw once more.
        try await wire.finish(Self.failure(error))
      }
    } catch let rejection as Rejection {
      var headers = rejection.headers
      headers.add(name: "content-length", value: "0")
      try? await exchange.respond(status: rejection.status, headers: headers, body: ByteBuffer())
    } catch {
      // The stream is gone, as its transport knows.
    }
  }

  private func route(_ exchange: any ServerExchange) throws -> (ServerMethod, any WireCall) {
    let head = exchange.head
    guard let method = self.find(head) else { throw Rejection(status: 404) }
    let isUnary = method.info.streamType == .unary
    let timeout = head.headers.first("connect-timeout-ms").flatMap(Self.timeout)
    let mayBeGET = isUnary && method.info.idempotencyLevel == .noSideEffects
    if head.method == "GET", mayBeGET {
      guard let query = GETQuery(head.query), let codec = self.options.codec(named: query.codecName) else {
        throw Rejection(status: 400)
      }
      return (
        method,
        ConnectUnaryCall(exchange, codec: codec, timeout: timeout, options: self.options, query: query)
      )
    }
    guard head.method == "POST" else {
      throw Rejection(status: 405, headers: ["allow": [mayBeGET ? "GET, POST" : "POST"]])
    }
    let type = Self.mediaType(head.headers.first("content-type") ?? "")
    if let call = self.makeGRPCCall(exchange, type) { return (method, call) }
    let prefix = isUnary ? "application/" : "application/connect+"
    guard type.hasPrefix(prefix), let codec = self.options.codec(named: String(type.dropFirst(prefix.count)))
    else {
      let types = self.options.codecs.map { prefix + $0.name }.joined(separator: ", ")
      throw Rejection(status: 415, headers: ["accept-post": [types]])
    }
    return (
      method,
      isUnary
        ? ConnectUnaryCall(exchange, codec: codec, timeout: timeout, options: self.options)
        : ConnectStreamCall(exchange, codec: codec, timeout: timeout, options: self.options)
    )
  }

  private func makeGRPCCall(_ exchange: any ServerExchange, _ type: String) -> GRPCCall? {
    // The longest first: each is a prefix of the one before.
    for form in [GRPCCall.Form.webText, .web, .http2] where type.hasPrefix(form.rawValue) {
      let codecName = type == form.rawValue ? "proto" : String(type.dropFirst(form.rawValue.count + 1))
      guard let codec = self.options.codec(named: codecName) else { return nil }
      return GRPCCall(exchange, codec: codec, form: form, options: self.options)
    }
    return nil
  }

  /// The error that the client gets. If a handler passes on the error of another call, the headers that belong to the other
  /// call's response are left out.
  private static func failure(_ error: any Error) -> ConnectError {
    var failure = ConnectError(error, code: .internalError)
    failure.metadata = Headers(failure.metadata.filter { !Self.isProtocolField($0.name) })
    return failure
  }

  private static func isProtocolField(_ name: String) -> Bool {
    // Handlers decide what a server says to clients that retry.
    if name == "grpc-retry-pushback-ms" { return false }
    if name.hasPrefix("grpc-") || name.hasPrefix("connect-") || name.hasPrefix("content-") { return true }
    return ["accept-encoding", "connection", "trailer", "transfer-encoding"].contains(name)
  }

  /// A content type without its parameters, in lower case.
  private static func mediaType(_ contentType: String) -> String {
    let type = contentType.prefix { $0 != ";" && $0 != " " }
    return type.lowercased()
  }

  /// The value of `connect-timeout-ms`, which has at most ten digits; nil for anything else.
  private static func timeout(_ text: String) -> Duration? {
    guard text.utf8.count <= 10 else { return nil }
    return Int64(text).map { .milliseconds($0) }
  }
}
