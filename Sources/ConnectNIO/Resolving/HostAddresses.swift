internal import ConnectChannels

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#else
internal import Darwin
#endif

/// The addresses of a host by the system's own resolver, `getaddrinfo`.
enum HostAddresses {
  #if canImport(Glibc)
  private static let streamSocket = CInt(SOCK_STREAM.rawValue)
  #else
  private static let streamSocket = SOCK_STREAM
  #endif

  /// `EAI_NODATA`, which C libraries hide from programs that ask for no extensions.
  #if canImport(Darwin)
  private static let noData: CInt = 7
  #else
  private static let noData: CInt = -5
  #endif

  /// Asks the system, which may take long. Blocks the thread.
  ///
  /// - Returns: The addresses without duplicates, in the system's order, which is that of RFC 6724.
  static func lookUp(_ host: String) throws(ResolutionError) -> [IPAddress] {
    // C would read the name only up to the zero byte.
    guard !host.utf8.contains(0) else { throw self.error(EAI_NONAME) }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    // Otherwise each address comes once for each type of sockets.
    hints.ai_socktype = self.streamSocket
    var first: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, nil, &hints, &first)
    guard status == 0 else { throw self.error(status) }
    defer { if let first { freeaddrinfo(first) } }
    var addresses: [IPAddress] = []
    var seen: Set<IPAddress> = []
    var next = first
    while let info = next?.pointee {
      if let address = self.address(info), seen.insert(address).inserted { addresses.append(address) }
      next = info.ai_next
    }
    return addresses
  }

  private static func address(_ info: addrinfo) -> IPAddress? {
    // As text, which has the interface of link-local addresses, too.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(NI_MAXHOST)) { buffer in
      let status = getnameinfo(
        info.ai_addr,
        info.ai_addrlen,
        buffer.baseAddress,
        socklen_t(buffer.count),
        nil,
        0,
        NI_NUMERICHOST
      )
      guard status == 0, let start = buffer.baseAddress else { return nil }
      return IPAddress(String(cString: start))
    }
  }

  private static func error(_ status: CInt) -> ResolutionError {
    var message = gai_strerror(status).map { String(cString: $0) } ?? "error \(status)"
    if status == EAI_SYSTEM, let text = strerror(errno) { message += ": \(String(cString: text))" }
    let reason: ResolutionError.Reason =
      switch status {
      case EAI_NONAME: .noSuchName
      case self.noData: .noRecords
      case EAI_AGAIN: .unreachable
      default: .serverFailure
      }
    return ResolutionError(reason, message: message, errorNumber: status)
  }
}
