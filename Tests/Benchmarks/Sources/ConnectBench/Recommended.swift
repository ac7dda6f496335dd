import ArgumentParser
import Connect
import ConnectInterceptors
import Logging

/// The recommended interceptors as a service has them whose traces and metrics nobody collects, and whose log is for
/// what goes wrong.
enum Recommended {
  enum Choice: String, ExpressibleByArgument, CaseIterable {
    case defaults
    case all

    var factories: [InterceptorFactory] {
      var logger = Logger(label: "calls", factory: { StreamLogHandler.standardError(label: $0) })
      logger.logLevel = .info
      var parts = ClientParts(logger: logger)
      if self == .all {
        parts.credentials = Credentials(
          for: ["127.0.0.1", "localhost"],
          token: AccessToken("secret", expiresIn: .seconds(86400)),
          configuration: .init(allowsCleartext: true)
        ) { _ in AccessToken("secret", expiresIn: .seconds(86400)) }
        parts.cache = ResponseCache()
        parts.concurrencyLimiter = ConcurrencyLimiter(maximumCalls: 10_000)
      }
      return .recommended(for: parts)
    }
  }
}
