internal import Connect
internal import NIOCore

/// When an attempt to connect got how far.
struct ConnectionTimes {
  private let start = NIODeadline.now()
  private var resolution: NIODeadline?
  private var connection: NIODeadline?
  private var handshake: NIODeadline?

  /// The first address is known; later ones do not count.
  mutating func didResolve() {
    if self.resolution == nil { self.resolution = .now() }
  }

  mutating func didConnect() { self.connection = .now() }

  mutating func didShakeHands() { self.handshake = .now() }

  var setup: HTTPConnectionInfo.Setup? {
    guard let connection = self.connection else { return nil }
    let resolution = self.resolution ?? self.start
    return HTTPConnectionInfo.Setup(
      nameResolution: Duration(resolution - self.start),
      connecting: Duration(connection - resolution),
      tls: self.handshake.map { Duration($0 - connection) }
    )
  }
}
