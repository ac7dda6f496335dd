internal import Connect
package import NIOSSL

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// Where NIOSSL looks for the certificate authorities that a Linux system trusts.
package struct SystemTrustRoots: Sendable {
  private let files: [String]
  private let folder: String

  /// - Parameter root: The root of the file system.
  package init(root: String = "") {
    self.files = ["\(root)/etc/ssl/certs/ca-certificates.crt", "\(root)/etc/pki/tls/certs/ca-bundle.crt"]
    self.folder = "\(root)/etc/ssl/certs"
  }

  /// All that are trusted; nil if they are not in one file.
  package func certificates() -> [NIOSSLCertificate]? {
    self.files.first(where: Self.hasContent).flatMap { try? NIOSSLCertificate.fromPEMFile($0) }
  }

  /// - Throws: ``ConnectError`` with `failed_precondition` if there are none. Otherwise each connection would fail, and
  ///   the error would be about the server.
  func check() throws(ConnectError) {
    #if os(Linux)
    guard !self.files.contains(where: Self.hasContent), !Self.hasHashedCertificates(self.folder) else {
      return
    }
    throw ConnectError(
      code: .failedPrecondition,
      message: """
        the system has no trusted roots: looked for \(self.files.joined(separator: ", ")) and hashed certificates in \
        \(self.folder); install the Debian package ca-certificates, or set the trust roots
        """
    )
    #endif
  }

  private static func hasContent(_ path: String) -> Bool {
    var facts = stat()
    return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG && facts.st_size > 0
  }

  /// Whether there is a file that is named after the hash of its subject, by which BoringSSL finds it.
  private static func hasHashedCertificates(_ path: String) -> Bool {
    guard let folder = opendir(path) else { return false }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      let parts = name.split(separator: ".", omittingEmptySubsequences: false)
      if parts.count == 2, parts[0].count == 8, parts[0].allSatisfy(\.isHexDigit), Int(parts[1]) != nil {
        return true
      }
    }
    return false
  }
}
