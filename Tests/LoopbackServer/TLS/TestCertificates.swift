internal import Foundation

/// A certificate authority, a server certificate for `localhost` and the loopback addresses, and a client
/// certificate, made by the `openssl` command in a temporary folder. They are valid for two days.
public struct TestCertificates: Sendable {
  public let authorityPEM: String
  public let serverCertificatePEM: String
  public let serverKeyPEM: String
  public let clientCertificatePEM: String
  public let clientKeyPEM: String

  /// Makes a new authority and new certificates.
  public static func make() async throws -> TestCertificates {
    let folder = FileManager.default.temporaryDirectory.appending(path: "connect-tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await self.makeCertificate("authority", in: folder, ["basicConstraints=critical,CA:TRUE"])
    try await self.makeCertificate(
      "server",
      in: folder,
      signed: true,
      ["basicConstraints=critical,CA:FALSE", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"]
    )
    try await self.makeCertificate("client", in: folder, signed: true, ["basicConstraints=critical,CA:FALSE"])
    func read(_ name: String) throws -> String {
      try String(contentsOf: folder.appending(path: name), encoding: .utf8)
    }
    return TestCertificates(
      authorityPEM: try read("authority.pem"),
      serverCertificatePEM: try read("server.pem"),
      serverKeyPEM: try read("server.key"),
      clientCertificatePEM: try read("client.pem"),
      clientKeyPEM: try read("client.key")
    )
  }

  private static func makeCertificate(
    _ name: String,
    in folder: URL,
    signed: Bool = false,
    _ extensions: [String]
  ) async throws {
    var arguments = [
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
      "-days", "2", "-subj", "/CN=connect-test-\(name)", "-keyout", "\(name).key", "-out", "\(name).pem",
    ]
    for item in extensions { arguments += ["-addext", item] }
    if signed { arguments += ["-CA", "authority.pem", "-CAkey", "authority.key"] }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let status = try await withCheckedThrowingContinuation { (done: CheckedContinuation<Int32, any Error>) in
      process.terminationHandler = { done.resume(returning: $0.terminationStatus) }
      do {
        try process.run()
      } catch {
        process.terminationHandler = nil
        done.resume(throwing: error)
      }
    }
    guard status == 0 else {
      throw LoopbackServerError("openssl could not make the \(name) certificate (status \(status))")
    }
  }
}
