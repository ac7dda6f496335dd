internal import Connect
public import Logging

extension Credentials {
  /// Credentials whose token is in a file that another program replaces, such as a projected service account token of
  /// Kubernetes.
  ///
  /// ```swift
  /// let credentials = Credentials.file("/var/run/secrets/tokens/api", for: ["api.example.com"])
  /// let config = ProtocolClientConfig(
  ///   host: "https://api.example.com",
  ///   interceptors: [{ _ in CredentialsInterceptor(credentials) }]
  /// )
  /// ```
  ///
  /// The first call waits until the file was read. Later, at most one call in each `checkInterval` starts to read it again
  /// and does not wait: no call reads a file itself. Without calls the file is not read. A file that is exchanged as a whole
  /// is always read as a whole, also through symbolic links that are exchanged. What is written in place may be read half
  /// written: write a new file, and rename it.
  ///
  /// A server that refuses the token makes the file be read at once, unless that was within the last second. If the file then
  /// has another token, the call makes one more attempt. If not, the call fails with the server's error, and other calls go
  /// on with the token there is. As all credentials, the token goes only to `hosts`, and only over TLS, unless
  /// ``Configuration/allowsCleartext`` says otherwise.
  ///
  /// A file that cannot be read for a moment harms no call: the token that was read before is used until it is `maximumAge`
  /// old, and the log has one warning. After that, and at the start, calls fail:
  ///
  /// - with `unavailable` if the file is missing or cannot be read. A retry may help.
  /// - with `unauthenticated` if it has no usable token: it is empty, has more than one line or more than 64 KiB, is not
  ///   UTF-8, or has other characters than those of printable ASCII. White space around the token does not count.
  /// - with `deadline_exceeded` if a file system does not answer within ``Configuration/refreshTimeout``.
  ///
  /// The message names the file and says nothing of its contents. After a failure, the file is not read for a second.
  ///
  /// - Parameters:
  ///   - path: The path of the file. A relative path is relative to the process's working folder; `~` has no meaning.
  ///   - hosts: Where the token may go, as in the initializer.
  ///   - checkInterval: How old a token that was read gets before a call starts to read the file again: 10 s by default, at
  ///     least 10 ms.
  ///   - maximumAge: How old a token that was read may get if the file cannot be read again: 60 s by default, at least
  ///     twice `checkInterval`. The token's own expiry is not looked at.
  ///   - configuration: How the token is shown. ``Configuration/refreshAhead``, ``Configuration/window`` and
  ///     ``Configuration/stallTimeout`` have no effect.
  ///   - clock: The time for `checkInterval` and `maximumAge`.
  ///   - logger: Warns when the file cannot be read again; nothing is logged by default.
  public static func file(
    _ path: String,
    for hosts: [String],
    checkInterval: Duration = .seconds(10),
    maximumAge: Duration = .seconds(60),
    configuration: Configuration = .defaults,
    clock: any Clock<Duration> = ContinuousClock(),
    logger: Logger = Logger(label: "connect", factory: { _ in SwiftLogNoOpLogHandler() })
  ) -> Credentials {
    let interval = max(checkInterval.clamped, .milliseconds(10))
    let rereading = TokenFile.Rereading(interval: interval, maximumAge: max(maximumAge.clamped, interval * 2))
    let file = TokenFile(path: path, rereading, clock: clock, logger: logger)
    var configuration = configuration
    configuration.rereading = rereading
    return Credentials(for: hosts, configuration: configuration, clock: clock, logger: logger) { _ in
      try await file.token()
    }
  }
}
