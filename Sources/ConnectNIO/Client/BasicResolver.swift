internal import Connect
internal import ConnectChannels
internal import NIOCore
internal import NIOPosix

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The system's resolver: getaddrinfo, on a thread of its own.
struct BasicResolver: ConnectChannels.Resolver {
  func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    if origin.scheme == .unix {
      return StaticResolver([Endpoint(.unix(path: origin.host))]).watch(origin, on: executor, report)
    }
    if let address = IPAddress(origin.host) {
      return StaticResolver([Endpoint(.ip(address, port: origin.port))]).watch(origin, on: executor, report)
    }
    return PollingResolver { origin, _, report in
      NIOThreadPool.singleton.submit { _ in
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(origin.host, "\(origin.port)", &hints, &list)
        guard code == 0 else {
          report(
            .failure(
              ConnectError(
                code: .unavailable,
                message: "cannot resolve the name of \(origin): \(String(cString: gai_strerror(code)))"
              )
            )
          )
          return
        }
        var endpoints: [Endpoint] = []
        var next = list
        while let info = next {
          var text = [CChar](repeating: 0, count: 64)
          getnameinfo(
            info.pointee.ai_addr,
            info.pointee.ai_addrlen,
            &text,
            64,
            nil,
            0,
            NI_NUMERICHOST
          )
          let host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
          if let address = IPAddress(host) { endpoints.append(Endpoint(.ip(address, port: origin.port))) }
          next = info.pointee.ai_next
        }
        freeaddrinfo(list)
        report(.success(ResolverUpdate(endpoints: endpoints)))
      }
    }.watch(origin, on: executor, report)
  }
}
