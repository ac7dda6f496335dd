import Connect
import ConnectChannels
import ConnectNIO
import NIOCore
import Synchronization
import XCTest

/// The name that goes out in the first message of a TLS handshake over TCP (RFC 6066, section 3).
final class ServerNameIndicationTests: XCTestCase {
  private typealias Configuration = NIOHTTPClient.Configuration

  /// What a client asks for; nil if the first message has no name.
  private func sent(host: String, serverName: String? = nil, endpointName: String? = nil) async throws
    -> String?
  {
    let names = Mutex<[String?]>([])
    let server = try await RawServer { connection in
      guard let hello = ClientHello(connection.received) else { return }
      names.withLock { $0.append(hello.serverName) }
      connection.close()
    }
    var configuration = Configuration(tls: .init(serverName: serverName))
    let address = EndpointAddress("127.0.0.1:\(server.port)")
    configuration.channel.resolver = StaticResolver([
      Endpoint(addresses: [address].compactMap { $0 }, serverName: endpointName)
    ])
    let client = try TestClient(Origin(scheme: .https, host: host, port: server.port), configuration)
    let failure = try await client.call().start().failure()
    XCTAssertEqual(failure.error.code, .unavailable, "\(failure.error)")
    await client.shutdown()
    await server.close()
    let all = names.withLock { $0 }
    XCTAssertGreaterThan(all.count, 0)
    return all.first ?? nil
  }

  func testNames() async throws {
    let cases: [(text: String, sent: String?)] = [
      ("local.test", "local.test"), ("Local.TEST.", "local.test"),
      ("xn--Bcher-KVA.test", "xn--bcher-kva.test"),
      ("a_b.test", "a_b.test"), ("localhost", "localhost"), ("127.0.0.1", nil), ("127.0.0.1.", nil),
      ("::1", nil),
      ("fe80::1", nil),
    ]
    for (text, sent) in cases {
      let ofHost = try await self.sent(host: text)
      XCTAssertEqual(ofHost, sent, text)
      let ofSetting = try await self.sent(host: "other.test", serverName: text)
      XCTAssertEqual(ofSetting, sent, text)
      let ofEndpoint = try await self.sent(host: "other.test", serverName: "third.test", endpointName: text)
      XCTAssertEqual(ofEndpoint, sent, text)
    }
    let inBrackets = try await self.sent(host: "other.test", serverName: "[::1]")
    XCTAssertNil(inBrackets)
  }
}

/// The first message of a TLS handshake (RFC 8446, section 4.1.2).
private struct ClientHello {
  private(set) var serverName: String?

  /// Nil if the bytes are not all there.
  init?(_ bytes: ByteBuffer) {
    var bytes = bytes
    // Of the record and of the message.
    guard bytes.readSlice(length: 3) != nil, let length = bytes.readInteger(as: UInt16.self),
      var record = bytes.readSlice(length: Int(length)), record.readSlice(length: 4) != nil,
      // Version and random number.
      record.readSlice(length: 34) != nil,
      Self.skip(&record, as: UInt8.self), Self.skip(&record, as: UInt16.self),
      Self.skip(&record, as: UInt8.self),
      var extensions = record.readLengthPrefixedSlice(as: UInt16.self)
    else { return nil }
    while let type = extensions.readInteger(as: UInt16.self) {
      guard var content = extensions.readLengthPrefixedSlice(as: UInt16.self) else { return nil }
      guard type == 0, var list = content.readLengthPrefixedSlice(as: UInt16.self) else { continue }
      guard list.readInteger(as: UInt8.self) == 0 else { return nil }
      self.serverName = list.readLengthPrefixedSlice(as: UInt16.self).map { String(buffer: $0) }
    }
  }

  private static func skip<Length: FixedWidthInteger>(_ bytes: inout ByteBuffer, as type: Length.Type) -> Bool
  {
    bytes.readLengthPrefixedSlice(as: type) != nil
  }
}
