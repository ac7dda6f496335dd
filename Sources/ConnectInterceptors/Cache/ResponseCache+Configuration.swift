public import Connect

extension ResponseCache {
  /// What a cache stores, for how long, and when it answers.
  public struct Configuration: Sendable {
    /// The policy of calls that set no ``CachePolicy``.
    public var policy: CachePolicy
    /// How long a response is fresh if the server sends no `cache-control: max-age`. Zero to store only responses that
    /// have it.
    public var timeToLive: Duration
    /// How long a response is fresh at most, whatever the server says.
    public var maximumTimeToLive: Duration
    /// How long after its expiry a response may be given if the network fails; zero for never. A server's
    /// `stale-if-error` shortens it, its `must-revalidate` and `no-cache` forbid it.
    public var staleOnError: Duration
    /// The errors that mean that the network, or the server as a whole, failed. After these, ``CachePolicy/networkFirst``
    /// and ``staleOnError`` take a response from the cache.
    public var networkErrors: Set<Code>
    /// The headers of a request that its response may depend on.
    public var keyHeaders: KeyHeaders
    /// True if the server answers everybody alike, whoever is logged in. Then a user may get a response made for another:
    /// `authorization`, `cookie`, `proxy-authorization`, headers in ``SensitiveHeaders`` and client certificates are no part
    /// of keys. Exclude other headers that say who the user is by ``keyHeaders``. A response that is `private` or sets a
    /// cookie is not shared even then, unless calls have a ``CachePartition``.
    public var sharesResponsesBetweenUsers: Bool
    /// The codecs that decode responses for ``setRules(for:isStale:shouldStore:)``, found by their name. List a codec of your
    /// own here; before the others, if it has the name of one of them.
    public var codecs: [any Codec] = [ProtoCodec(), JSONCodec()]
    /// By the method's path.
    var messageRules: [String: MessageRules] = [:]

    /// A configuration as given; what is left out is as in ``defaults``.
    public init(
      policy: CachePolicy = .cacheFirst,
      timeToLive: Duration = .seconds(60),
      maximumTimeToLive: Duration = .seconds(24 * 60 * 60),
      staleOnError: Duration = .zero,
      networkErrors: Set<Code> = [.unavailable, .deadlineExceeded, .resourceExhausted],
      keyHeaders: KeyHeaders = .defaults,
      sharesResponsesBetweenUsers: Bool = false
    ) {
      self.policy = policy
      self.timeToLive = timeToLive
      self.maximumTimeToLive = maximumTimeToLive
      self.staleOnError = staleOnError
      self.networkErrors = networkErrors
      self.keyHeaders = keyHeaders
      self.sharesResponsesBetweenUsers = sharesResponsesBetweenUsers
    }

    /// Cache first, fresh for 60 s and at most a day, nothing stale, all headers but those of tracing.
    public static var defaults: Configuration { Configuration() }
  }

  /// Which of a request's headers are part of a response's key. Two requests that differ in one of them never share a
  /// response.
  public struct KeyHeaders: Sendable, Hashable {
    private enum Choice: Sendable, Hashable {
      case only(Set<String>)
      case allExcept(Set<String>)
    }

    private let choice: Choice

    /// All headers except `names`. The request-id header of a ``ContextInterceptor`` further outside is left out, too, but
    /// `x-request-id` has to be named. This is safe where a header that the cache does not know says who the user is. If
    /// `names` has a header known to say so, such as `authorization`, requests with this header bypass the cache.
    public static func all(except names: Set<String>) -> KeyHeaders {
      KeyHeaders(choice: .allExcept(Set(names.map { $0.lowercased() }).union(Self.ofCaching)))
    }

    /// Only the headers in `names`, which must include every header that says who the user is. Requests with another header
    /// known to say so, such as `authorization`, bypass the cache.
    public static func only(_ names: Set<String>) -> KeyHeaders {
      KeyHeaders(choice: .only(Set(names.map { $0.lowercased() }).subtracting(Self.ofCaching)))
    }

    /// All but headers that differ in each call: those of tracing, request ids, attempt counts. `baggage` is included, since
    /// it may name the user or the tenant; name it in ``all(except:)`` if it does not.
    public static let defaults = all(except: [
      "traceparent", "tracestate", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid",
      "x-b3-sampled", "x-request-id", "x-correlation-id", "user-agent",
      "grpc-previous-rpc-attempts",
    ])

    /// Headers addressed to caches.
    private static let ofCaching: Set<String> = ["cache-control", "if-none-match", "request-hash"]

    func contains(_ name: String) -> Bool {
      switch self.choice {
      case .only(let names): names.contains(name)
      case .allExcept(let names): !names.contains(name)
      }
    }
  }
}
