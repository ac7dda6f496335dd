public import Connect
public import Logging

extension CallLog {
  /// Makes the text of a message, of the method's own types.
  public typealias MessageFormatter = @Sendable (any Sendable) -> String

  /// What is logged, and at which level. A level of nil means that nothing is logged.
  public struct Options: Sendable {
    /// The level for the start of a call.
    public var startLevel: Logger.Level?
    /// The level for a message that is sent or received. Only with a ``messageFormatter``.
    public var messageLevel: Logger.Level?
    /// The level for a call that has succeeded.
    public var successLevel: Logger.Level?
    /// The level for a call that has failed, by its error.
    public var failureLevel: @Sendable (ConnectError) -> Logger.Level?
    /// Which lines are logged when there are many; nil for all.
    public var sampling: LogSampling?
    /// Whether a call's headers and trailers are logged with its end, as they go to the network and come from it.
    public var logsHeaders: Bool
    /// The names of headers whose values are replaced by `<redacted>`, in any case; besides those that an interceptor
    /// has named in ``SensitiveHeaders``, as ``CredentialsInterceptor`` does.
    public var redactedHeaders: Set<String> {
      didSet { self.redactedHeaders = Self.lowercased(self.redactedHeaders) }
    }
    /// Makes the text of a message; nil for no messages in the log. It gets the method's own types. Runs on the call's
    /// executor, and only for what is logged.
    public var messageFormatter: MessageFormatter?
    /// The maximum length of a message, a header or an error's message in the log, in characters. The rest is cut
    /// off.
    public var maximumLength: Int

    /// Options as given; what is left out is as in ``defaults``.
    public init(
      startLevel: Logger.Level? = .trace,
      messageLevel: Logger.Level? = .debug,
      successLevel: Logger.Level? = .debug,
      failureLevel: @escaping @Sendable (ConnectError) -> Logger.Level? = Options.failureLevel,
      sampling: LogSampling? = nil,
      logsHeaders: Bool = false,
      redactedHeaders: Set<String> = Options.redactedHeaders,
      messageFormatter: MessageFormatter? = nil,
      maximumLength: Int = 1024
    ) {
      self.startLevel = startLevel
      self.messageLevel = messageLevel
      self.successLevel = successLevel
      self.failureLevel = failureLevel
      self.sampling = sampling
      self.logsHeaders = logsHeaders
      self.redactedHeaders = Self.lowercased(redactedHeaders)
      self.messageFormatter = messageFormatter
      self.maximumLength = maximumLength
    }

    /// Starts at trace, successes at debug, failures by ``failureLevel(_:)``; all lines, no headers, no messages.
    public static var defaults: Options { Options() }

    /// `warning` for errors that point at a service out of order (unknown, deadline_exceeded, unimplemented, internal,
    /// unavailable, data_loss), `debug` for calls that the caller cancelled, `info` for all others, which are answers.
    public static func failureLevel(_ error: ConnectError) -> Logger.Level {
      switch error.code {
      case .unknown, .deadlineExceeded, .unimplemented, .internalError, .unavailable, .dataLoss: .warning
      case .canceled: .debug
      default: .info
      }
    }

    /// Headers that carry credentials.
    public static var redactedHeaders: Set<String> {
      [
        "authorization", "proxy-authorization", "cookie", "set-cookie", "api-key", "x-api-key",
        "x-auth-token", "x-access-token", "x-csrf-token", "x-amz-security-token", "x-goog-api-key",
        "x-goog-iam-authorization-token", "x-forwarded-client-cert",
      ]
    }

    private static func lowercased(_ names: Set<String>) -> Set<String> {
      Set(names.map { $0.lowercased() })
    }
  }
}
