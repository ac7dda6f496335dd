public import Connect

extension Credentials {
  /// How the token is shown to servers, and when it is replaced.
  public struct Configuration: Sendable {
    /// The header that carries the token.
    public var header: String
    /// What comes before the token in the header, with a space between them; nil for nothing.
    public var scheme: String?
    /// How long before its expiry a token is replaced; at most half of the token's lifetime. The first call in that time
    /// starts the refresh, and no call waits for it. Without calls nothing is fetched.
    public var refreshAhead: Duration
    /// How long a refresh may take. After that, the calls that wait for it fail with `deadline_exceeded`, unless
    /// their own deadline passes first.
    public var refreshTimeout: Duration
    /// How often a token may be fetched.
    public var window: RefreshWindow
    /// Whether the token may be sent without TLS. Unix domain sockets count as secure, virtual machines
    /// (`vsock:`) do not.
    public var allowsCleartext: Bool
    /// How long the headers of a stream may be held back, to see whether the server refuses the token right after them.
    /// A stream can be retried only while its headers are held back.
    public var streamHeaderDelay: Duration
    /// Whether an error means that the server refused the token. The token is then discarded, and the call makes one more
    /// attempt with another token. By default an error with the code `unauthenticated`.
    public var isRefusal: @Sendable (ConnectError) -> Bool
    /// The methods whose calls show credentials: by default all. Leave out the methods that log in.
    public var methods: @Sendable (MethodInfo) -> Bool
    /// How long a refresh may take before it is suspected to wait for itself. This happens if the provider makes a call that
    /// inherits nothing of the provider's task: the call then waits for the token like any other.
    ///
    /// After this time, calls made since the refresh began fail with `unauthenticated`, and so do new calls until it
    /// ends. The error's message says what to do. Calls of methods that are known not to be the provider's do not fail. A
    /// method is known once a call of it has started this refresh, or has waited for an earlier one.
    public var stallTimeout: Duration
    /// When a token is read again from its file; nil for tokens that a provider fetches.
    var rereading: TokenFile.Rereading?

    /// A configuration as given; what is left out is as in ``defaults``.
    public init(
      header: String = "authorization",
      scheme: String? = "Bearer",
      refreshAhead: Duration = .seconds(60),
      refreshTimeout: Duration = .seconds(30),
      window: RefreshWindow = .defaults,
      allowsCleartext: Bool = false,
      streamHeaderDelay: Duration = .milliseconds(50),
      isRefusal: @escaping @Sendable (ConnectError) -> Bool = { $0.code == .unauthenticated },
      methods: @escaping @Sendable (MethodInfo) -> Bool = { _ in true },
      stallTimeout: Duration = .seconds(10)
    ) {
      self.header = header
      self.scheme = scheme
      self.refreshAhead = refreshAhead
      self.refreshTimeout = refreshTimeout
      self.window = window
      self.allowsCleartext = allowsCleartext
      self.streamHeaderDelay = streamHeaderDelay
      self.isRefusal = isRefusal
      self.methods = methods
      self.stallTimeout = stallTimeout
    }

    /// `authorization: Bearer …`, 60 s ahead, 30 s for a refresh, the default window, TLS only, 50 ms, `unauthenticated`,
    /// all methods, 10 s.
    public static var defaults: Configuration { Configuration() }
  }

  /// Limits how often a token may be fetched, so that a server that refuses every token does not cause a storm.
  ///
  /// When the limit is reached, a call without a token fails with `unauthenticated`. A token that the server refuses
  /// is then kept.
  public struct RefreshWindow: Sendable, Hashable {
    /// The length of the time window, which ends now.
    public var interval: Duration
    /// How many refreshes may start in the window; at least 1.
    public var maximumRefreshes: Int

    /// A window; by default 5 refreshes within 30 s. Less than 1 refresh counts as 1.
    public init(interval: Duration = .seconds(30), maximumRefreshes: Int = 5) {
      self.interval = interval
      self.maximumRefreshes = max(1, maximumRefreshes)
    }

    /// 5 refreshes within 30 s.
    public static var defaults: RefreshWindow { RefreshWindow() }
  }
}
