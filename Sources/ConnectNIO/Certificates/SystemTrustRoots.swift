package import Connect

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// The certificates that a Linux system trusts.
package struct SystemTrustRoots: Sendable {
  /// Nothing that is trusted is as large.
  private static let maximumSize = 64 << 20

  private let files: [String]
  private let folder: String

  /// - Parameter root: The root of the file system.
  package init(root: String = "") {
    self.files = ["\(root)/etc/ssl/certs/ca-certificates.crt", "\(root)/etc/pki/tls/certs/ca-bundle.crt"]
    self.folder = "\(root)/etc/ssl/certs"
  }

  /// All that are trusted. Blocks the thread.
  ///
  /// - Throws: ``ConnectError`` with `failed_precondition` if there are none. Otherwise each connection would fail, and
  ///   the error would be about the server.
  package func anchors() throws(ConnectError) -> TrustAnchors {
    if let file = self.files.first(where: Self.hasContent) {
      guard let bytes = try? SmallFile.bytes(of: file, maximumSize: Self.maximumSize),
        let anchors = TrustAnchors(pem: bytes, skipsUnreadable: true)
      else {
        throw Self.error("there is no certificate in PEM in \(file), which has the system's trusted roots")
      }
      return anchors
    }
    let parts = Self.hashedCertificates(self.folder).compactMap { path in
      (try? SmallFile.bytes(of: path, maximumSize: Self.maximumSize)).flatMap { TrustAnchors(pem: $0) }
    }
    guard !parts.isEmpty else {
      throw Self.error(
        """
        the system has no trusted roots: looked for \(self.files.joined(separator: ", ")) and hashed certificates in \
        \(self.folder); install the Debian package ca-certificates, or set the trust roots
        """
      )
    }
    return TrustAnchors(parts.flatMap(\.all), haveTrustSettings: parts.contains(where: \.haveTrustSettings))
  }

  private static func error(_ message: String) -> ConnectError {
    ConnectError(code: .failedPrecondition, message: message)
  }

  private static func hasContent(_ path: String) -> Bool {
    var facts = stat()
    return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFREG && facts.st_size > 0
  }

  /// The files that are named after the hash of a subject, by which OpenSSL finds them.
  private static func hashedCertificates(_ path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var paths: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      let parts = name.split(separator: ".", omittingEmptySubsequences: false)
      if parts.count == 2, parts[0].count == 8, parts[0].allSatisfy(\.isHexDigit), Int(parts[1]) != nil {
        paths.append("\(path)/\(name)")
      }
    }
    return paths.sorted()
  }
}
