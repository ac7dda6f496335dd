internal import Foundation
internal import NIOCore
internal import SwiftProtobuf

/// A call in gRPC, whose status is in the HTTP trailers, or in gRPC-Web, which has them at the end of the body.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>,
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>
final class GRPCCall: WireCall {
  let exchange: Exchange
  let codec: MessageCodec
  let timeout: Int64?
  var headers = HeaderFields()
  var trailers = HeaderFields()
  private let isWeb: Bool
  private var reader: EnvelopeReader
  private var areHeadersSent = false

  init(_ exchange: Exchange, codec: MessageCodec, isWeb: Bool) {
    self.exchange = exchange
    self.codec = codec
    self.isWeb = isWeb
    self.reader = EnvelopeReader(exchange)
    self.timeout = exchange.request.headers.first("grpc-timeout").flatMap(Self.milliseconds)
  }

  func receive() async throws -> ByteBuffer? {
    try await self.reader.next()
  }

  func sendHeaders() async throws {
    guard !self.areHeadersSent else { return }
    self.areHeadersSent = true
    let type = self.isWeb ? "application/grpc-web" : "application/grpc"
    var headers: HeaderFields = ["content-type": "\(type)+\(self.codec.rawValue)"]
    headers.add(contentsOf: self.headers)
    try await self.exchange.sendHead(status: 200, headers: headers)
  }

  func send(_ message: ByteBuffer) async throws {
    try await self.sendHeaders()
    try await self.exchange.sendBody(ByteBuffer(envelope: message, flags: 0))
  }

  func finish(_ failure: RPCFailure?) async throws {
    try await self.sendHeaders()
    var fields: HeaderFields = ["grpc-status": "\(failure?.code.rawValue ?? 0)"]
    if let failure {
      fields.add("grpc-message", Self.percentEncoded(failure.message))
      if !failure.details.isEmpty { fields.add("grpc-status-details-bin", try Self.details(of: failure)) }
    }
    fields.add(contentsOf: self.trailers)
    guard self.isWeb else {
      try await self.exchange.sendEnd(trailers: fields)
      return
    }
    let block = fields.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    try await self.exchange.sendEnd(ByteBuffer(envelope: ByteBuffer(string: block), flags: 0x80))
  }

  // MARK: - Values of fields

  private static func milliseconds(_ timeout: String) -> Int64? {
    guard let unit = timeout.last, let number = Int64(timeout.dropLast()) else { return nil }
    switch unit {
    case "H": return number * 3_600_000
    case "M": return number * 60_000
    case "S": return number * 1000
    case "m": return number
    case "u": return max(number / 1000, 1)
    case "n": return max(number / 1_000_000, 1)
    default: return nil
    }
  }

  private static func percentEncoded(_ message: String) -> String {
    message.utf8.map { byte in
      (0x20...0x7e).contains(byte) && byte != UInt8(ascii: "%")
        ? String(UnicodeScalar(byte)) : "%" + String(byte, radix: 16, uppercase: true).leftPadded
    }.joined()
  }

  /// `google.rpc.Status` in base64 without padding.
  private static func details(of failure: RPCFailure) throws -> String {
    var bytes: [UInt8] = []
    func add(_ field: UInt8, _ value: [UInt8]) {
      bytes.append(field << 3 | 2)
      var length = value.count
      while length > 0x7f {
        bytes.append(UInt8(length & 0x7f) | 0x80)
        length >>= 7
      }
      bytes.append(UInt8(length))
      bytes.append(contentsOf: value)
    }
    bytes += [1 << 3, UInt8(failure.code.rawValue)]
    add(2, Array(failure.message.utf8))
    for detail in failure.details { add(3, try detail.serializedBytes()) }
    return Data(bytes).base64EncodedString().replacing("=", with: "")
  }
}

extension String {
  fileprivate var leftPadded: String { self.count == 1 ? "0" + self : self }
}
