internal import Connect
internal import ConnectChannels

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// What the files of the machine say about names.
struct ResolverFiles: Sendable {
  var nameServers: ResolverConfiguration
  var hosts: HostsFile
  /// The name of this machine.
  var hostname: String

  static let resolverPath = "/etc/resolv.conf"
  /// Lists of blocked hosts, which some keep in `/etc/hosts`, have a few megabytes.
  private static let maximumSize = 16 << 20

  /// Reads the files as they are now. Blocks the thread.
  ///
  /// Files that cannot be read count as empty, as in the C library.
  init(_ configuration: DNSResolver.Configuration, resolverPath: String = Self.resolverPath) {
    let hostname = Self.readHostname()
    self.nameServers =
      configuration.nameServers
      ?? ResolverConfiguration(parsing: Self.text(of: resolverPath), hostname: hostname)
    self.hosts = HostsFile(parsing: configuration.hostsFile.map(Self.text) ?? "")
    self.hostname = hostname
  }

  private static func text(of path: String) -> String {
    let bytes = try? SmallFile.bytes(of: path, maximumSize: self.maximumSize)
    return String(decoding: ByteOrderMark.removed(from: bytes ?? []), as: UTF8.self)
  }

  private static func readHostname() -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      buffer.initialize(repeating: 0)
      // The last byte stays zero, whatever the name's length.
      guard let start = buffer.baseAddress, gethostname(start, buffer.count - 1) == 0 else { return "" }
      return String(cString: start)
    }
  }
}
