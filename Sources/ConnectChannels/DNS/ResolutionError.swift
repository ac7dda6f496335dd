/// Why a name has no addresses, services or texts.
public struct ResolutionError: Swift.Error, Hashable, Sendable {
  /// Why a lookup has failed, for programs.
  public enum Reason: Hashable, Sendable {
    /// The text is no domain name.
    case invalidName
    /// The name does not exist (NXDOMAIN).
    case noSuchName
    /// The name exists, but has no record of the wanted type (NODATA).
    case noRecords
    /// The service is decidedly not available: its SRV record has the target `.` (RFC 2782).
    case serviceUnavailable
    /// Aliases (CNAME) form a loop, or too long a chain.
    case tooManyAliases
    /// Servers answered, but none of them with an answer.
    case serverFailure
    /// No server answered.
    case unreachable
  }

  /// Why the lookup has failed, for programs.
  public var reason: Reason
  /// What happened, and what to do about it.
  public var message: String
  /// For how long the absence is valid, as the servers say (RFC 2308); nil if they do not say it.
  public var timeToLive: Duration?
  /// The number of `getaddrinfo`, such as `EAI_NONAME`; nil where DNS was asked without the system's resolver.
  public var errorNumber: Int32?

  /// An error of a resolver.
  public init(
    _ reason: Reason,
    message: String,
    timeToLive: Duration? = nil,
    errorNumber: Int32? = nil
  ) {
    self.reason = reason
    self.message = message
    self.timeToLive = timeToLive
    self.errorNumber = errorNumber
  }

  /// Whether servers say with authority that there is nothing. Otherwise a repetition may succeed.
  public var isNegative: Bool {
    switch self.reason {
    case .noSuchName, .noRecords, .serviceUnavailable: true
    case .invalidName, .tooManyAliases, .serverFailure, .unreachable: false
    }
  }
}

extension ResolutionError: CustomStringConvertible {
  public var description: String { self.message }
}
