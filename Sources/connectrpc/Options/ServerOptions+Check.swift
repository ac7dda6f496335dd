import Connect
import ConnectChannels
import ConnectNIO
import Foundation
import NIOSSL

extension ServerOptions {
  /// Checks the options without a server: what is wrong with them is no finding about the server.
  ///
  /// - Throws: ``Failure`` of usage.
  func check(for host: String) throws {
    _ = try self.httpConfiguration(for: host)
    _ = try self.callOptions()
    if let file = self.cacert { _ = try Self.certificates(in: file) }
    if let name = self.servername {
      do throws(HostProblem) {
        _ = try ReferenceIdentifier(name)
      } catch {
        throw Failure.usage("--servername \(name): \(error.text)")
      }
    }
    guard let cert = self.cert, let key = self.key else { return }
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.certificateChain = try Self.certificates(in: cert).map { .certificate($0) }
    guard let privateKey = try? NIOSSLPrivateKey(bytes: Self.bytes(of: key), format: .pem) else {
      throw Failure.usage("there is no usable private key in PEM in the file \(key)")
    }
    configuration.privateKey = .privateKey(privateKey)
    do {
      _ = try NIOSSLContext(configuration: configuration)
    } catch {
      throw Failure.usage("the key in \(key) is not that of the certificate in \(cert)")
    }
  }

  /// Says which options have no effect with this host.
  func noteUnused(for host: String) {
    guard !host.hasPrefix("https:") else { return }
    let options = [
      ("--cacert", self.cacert != nil), ("--cert", self.cert != nil), ("--key", self.key != nil),
      ("--servername", self.servername != nil), ("--insecure", self.isInsecure),
    ]
    let unused = options.filter(\.1).map(\.0).joined(separator: ", ")
    guard !unused.isEmpty else { return }
    let scheme = host.socketScheme ?? "http://"
    Console.note("no effect of \(unused): \(scheme) has no TLS")
  }

  private static func certificates(in file: String) throws -> [NIOSSLCertificate] {
    let bytes = try self.bytes(of: file)
    guard let certificates = try? NIOSSLCertificate.fromPEMBytes(bytes), !certificates.isEmpty else {
      throw Failure.usage("there is no certificate in PEM in the file \(file)")
    }
    return certificates
  }

  /// The content of a file in PEM.
  static func bytes(of file: String) throws -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: file) else {
      throw Failure.usage("cannot read the file \(file)")
    }
    return ByteOrderMark.removed(from: Array(data))
  }
}
