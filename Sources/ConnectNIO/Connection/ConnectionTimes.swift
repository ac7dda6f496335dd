package import Connect
internal import NIOCore

/// When an attempt to connect got how far.
package struct ConnectionTimes {
  private let start = NIODeadline.now()
  private var connection: NIODeadline?
  private var handshake: NIODeadline?

  package init() {}

  package mutating func didConnect() { self.connection = .now() }

  package mutating func didShakeHands() { self.handshake = .now() }

  package func setup(nameResolution: Duration) -> HTTPConnectionInfo.Setup? {
    guard let connection = self.connection else { return nil }
    return HTTPConnectionInfo.Setup(
      nameResolution: nameResolution,
      connecting: Duration(connection - self.start),
      tls: self.handshake.map { Duration($0 - connection) }
    )
  }
}
