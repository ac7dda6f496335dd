internal import Foundation
internal import NIOCore

/// Finds the method and the wire protocol of a request, and serves it.
enum Dispatcher {
  /// Why a request is answered with a plain HTTP status.
  private struct Rejection: Error {
    var status: Int
    var headers: HeaderFields = [:]
  }

  static func serve(_ exchange: Exchange) async {
    do {
      let (method, wire) = try Self.route(exchange)
      if let timeout = wire.timeout { exchange.setDeadline(in: .milliseconds(timeout)) }
      do {
        if let version = exchange.request.headers.first("connect-protocol-version"), version != "1" {
          throw RPCFailure(.invalidArgument, "connect-protocol-version must be \"1\": got \"\(version)\"")
        }
        try await method.serve(wire)
        try await wire.finish(nil)
      } catch {
        // If the client is gone this does nothing but throw once more.
        try await wire.finish(RPCFailure(error))
      }
    } catch let rejection as Rejection {
      var headers = rejection.headers
      headers.add("content-length", "0")
      try? await exchange.respond(status: rejection.status, headers: headers)
    } catch {
      // The stream is gone, which the journal knows.
    }
  }

  private static func route(_ exchange: Exchange) throws -> (Method, any WireCall) {
    let request = exchange.request
    guard request.path.hasPrefix(TestService.prefix),
      let method = TestService.methods[String(request.path.dropFirst(TestService.prefix.count))]
    else { throw Rejection(status: 404) }
    let timeout = request.headers.first("connect-timeout-ms").flatMap { Int64($0) }
    if request.method == "GET", method.isIdempotent {
      return (method, try Self.makeGetCall(exchange, timeout))
    }
    guard request.method == "POST" else {
      throw Rejection(status: 405, headers: ["allow": method.isIdempotent ? "GET, POST" : "POST"])
    }
    let contentType = (request.headers.first("content-type") ?? "").split(separator: ";").first ?? ""
    let type = contentType.trimmingCharacters(in: .whitespaces).lowercased()
    if let call = Self.makeGRPCCall(exchange, type) { return (method, call) }
    switch (method.kind, type) {
    case (.unary, "application/proto"):
      return (method, ConnectUnaryCall(exchange, codec: .proto, timeout: timeout))
    case (.unary, "application/json"):
      return (method, ConnectUnaryCall(exchange, codec: .json, timeout: timeout))
    case (.stream, "application/connect+proto"):
      return (method, ConnectStreamCall(exchange, codec: .proto, timeout: timeout))
    case (.stream, "application/connect+json"):
      return (method, ConnectStreamCall(exchange, codec: .json, timeout: timeout))
    default:
      let prefix = method.kind == .unary ? "application/" : "application/connect+"
      throw Rejection(status: 415, headers: ["accept-post": "\(prefix)proto, \(prefix)json"])
    }
  }

  private static func makeGRPCCall(_ exchange: Exchange, _ type: String) -> GRPCCall? {
    for (prefix, isWeb) in [("application/grpc-web", true), ("application/grpc", false)] {
      guard type.hasPrefix(prefix) else { continue }
      let codec = type == prefix ? "proto" : String(type.dropFirst(prefix.count + 1))
      guard let codec = MessageCodec(rawValue: codec) else { return nil }
      return GRPCCall(exchange, codec: codec, isWeb: isWeb)
    }
    return nil
  }

  /// <https://connectrpc.com/docs/protocol#unary-get-request>
  private static func makeGetCall(_ exchange: Exchange, _ timeout: Int64?) throws -> ConnectUnaryCall {
    let encoded = exchange.request.query.replacing("+", with: "%20")
    let items = URLComponents(string: "/?" + encoded)?.queryItems ?? []
    let query = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
    guard query["connect"] == "v1", query["compression", default: "identity"] == "identity",
      let codec = query["encoding"].flatMap(MessageCodec.init(rawValue:)), let message = query["message"]
    else { throw Rejection(status: 400) }
    var bytes = ByteBuffer(string: message)
    if query["base64"] == "1" {
      var text = message.replacing("-", with: "+").replacing("_", with: "/")
      text += String(repeating: "=", count: (4 - text.count % 4) % 4)
      guard let data = Data(base64Encoded: text) else { throw Rejection(status: 400) }
      bytes = ByteBuffer(bytes: data)
    }
    return ConnectUnaryCall(exchange, codec: codec, timeout: timeout, getMessage: bytes)
  }
}
