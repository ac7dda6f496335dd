internal import CNgtcp2
internal import NIOPosix

/// Counts the packets that were decrypted, and so come from the peer. Anybody can send datagrams with the addresses of a
/// connection.
///
/// Whoever has seen a client's first datagram can also send Initial packets (RFC 9001, section 5.2). libngtcp2 drops those
/// once the handshake goes on, and nothing depends on the count before the handshake is complete.
///
/// libngtcp2 does not tell its callback for decryption which connection a packet belongs to. So the packets are counted for
/// each thread, and a session compares the numbers before and after it has read a datagram.
enum AuthenticPackets {
  /// `@unchecked Sendable`: each thread has its own.
  private final class Count: @unchecked Sendable {
    var value: UInt64 = 0
  }

  private static let counts = ThreadSpecificVariable<Count>()

  /// How many packets were decrypted on this thread.
  static var count: UInt64 { self.counts.currentValue?.value ?? 0 }

  static let decrypt: ngtcp2_decrypt = {
    bytes,
    aead,
    context,
    encrypted,
    count,
    nonce,
    nonceCount,
    data,
    dataCount in
    let result = ngtcp2_crypto_decrypt_cb(
      bytes,
      aead,
      context,
      encrypted,
      count,
      nonce,
      nonceCount,
      data,
      dataCount
    )
    if result == 0 { AuthenticPackets.add() }
    return result
  }

  private static func add() {
    if let count = self.counts.currentValue {
      count.value &+= 1
    } else {
      let count = Count()
      count.value = 1
      self.counts.currentValue = count
    }
  }
}
