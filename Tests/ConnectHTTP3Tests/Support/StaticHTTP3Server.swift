internal import Connect
internal import ConnectHTTP3
internal import ConnectNIO
internal import Foundation
internal import LoopbackServer
internal import NIOCore
internal import NIOPosix
internal import TestSupport

/// Debian's `gtlsserver` (`ngtcp2-server`), which serves the files of a folder. The process ends when this process
/// ends.
///
/// The response to a path that is a number has this number of bytes.
final class StaticHTTP3Server: Sendable {
  let port: Int
  private let folder: URL
  private let process: ChildProcess
  private let authority: [UInt8]

  /// - Parameters:
  ///   - files: Their contents, by path. The extension sets the content type: `.pb` is a message, `.stream` is a
  ///     Connect stream.
  ///   - options: Command-line options of the server.
  ///   - host: The address that it listens on.
  init(_ files: [String: [UInt8]] = [:], options: [String] = [], host: String = "127.0.0.1") async throws {
    let certificates = try await SharedCertificates.shared.get()
    self.authority = Array(certificates.authorityPEM.utf8)
    self.folder = FileManager.default.temporaryDirectory.appending(path: "connect-static-\(UUID())")
    let documents = self.folder.appending(path: "documents")
    try FileManager.default.createDirectory(at: documents, withIntermediateDirectories: true)
    for (name, content) in files { try Data(content).write(to: documents.appending(path: name)) }
    let (key, chain, types) = ("server.key", "server.pem", "types")
    try Data(certificates.serverKeyPEM.utf8).write(to: self.folder.appending(path: key))
    try Data(certificates.serverCertificatePEM.utf8).write(to: self.folder.appending(path: chain))
    try Data("application/proto pb\napplication/connect+proto stream\ntext/html html\n".utf8)
      .write(to: self.folder.appending(path: types))
    self.port = try await Self.freePort(host)
    let path = { [folder] (name: String) in folder.appending(path: name).path() }
    self.process = try ChildProcess(
      URL(filePath: "/usr/sbin/gtlsserver"),
      arguments: ["--quiet", "--htdocs=\(documents.path())", "--mime-types-file=\(path(types))"] + options
        + [host, "\(self.port)", path(key), path(chain)]
    )
    try await self.waitForSocket()
  }

  deinit {
    try? FileManager.default.removeItem(at: self.folder)
  }

  var configuration: NIOHTTPClient.Configuration {
    NIOHTTPClient.Configuration(tls: .init(trustRoots: .pemBytes(self.authority)), http3: .alone)
  }

  /// A UDP port that was free a moment ago: the server does not report which port it has chosen.
  private static func freePort(_ host: String) async throws -> Int {
    let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: host, port: 0).get()
    let port = channel.localAddress?.port ?? 0
    // If this socket stayed open, it would be mistaken for the server's.
    try await channel.close()
    return port
  }

  private static var sockets: String {
    get throws {
      try ["/proc/net/udp", "/proc/net/udp6"].map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
    }
  }

  private func waitForSocket() async throws {
    let hexadecimal = String(self.port, radix: 16, uppercase: true)
    let address = ":" + String(repeating: "0", count: 4 - hexadecimal.count) + hexadecimal + " "
    let end = ContinuousClock.now + .seconds(30)
    while try !Self.sockets.contains(address) {
      guard self.process.isRunning, ContinuousClock.now < end else {
        throw LoopbackServerError("gtlsserver did not start: \(self.process.errorOutput)")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}
