public import Connect
public import ConnectChannels
internal import NIOPosix
internal import Synchronization

/// Finds endpoints with the system's resolver, `getaddrinfo`: what network clients do by default.
///
/// It follows `/etc/nsswitch.conf`, and so finds all names that other programs of the machine find. Each address is an
/// endpoint. The system does not say for how long an answer is valid: it is asked again when a connection fails, at most
/// every 30 s. ``DNSResolver`` knows the time to live, and SRV records.
///
/// A host that is an IP address, or a Unix domain socket, is the endpoint itself.
///
/// A look that fails is reported with the code `unavailable`. The error's `exception` is a `ResolutionError`, whose reason
/// tells a name that does not exist from servers that could not be asked.
public struct SystemResolver: NameResolver {
  typealias LookUp = @Sendable (_ host: String) -> Result<[IPAddress], ResolutionError>

  private let minimumInterval: Duration
  private let seed: UInt64?
  private let lookUp: LookUp

  /// A resolver that asks the C library.
  ///
  /// - Parameter minimumInterval: The least time between two looks that failing connections ask for.
  public init(minimumInterval: Duration = .seconds(30)) {
    self.init(minimumInterval: minimumInterval, seed: nil) { host in
      Result { () throws(ResolutionError) in try HostAddresses.lookUp(host) }
    }
  }

  /// - Parameter lookUp: Called on a thread that may be blocked.
  init(minimumInterval: Duration = .seconds(30), seed: UInt64?, lookUp: @escaping LookUp) {
    self.minimumInterval = minimumInterval
    self.seed = seed
    self.lookUp = lookUp
  }

  /// False: the system knows of none.
  public var mayBringServiceConfig: Bool { false }

  public func watch(
    _ origin: Origin,
    on executor: any CallExecutor,
    _ report: @escaping @Sendable (Result<ResolverUpdate, ConnectError>) -> Void
  ) -> any ResolverWatch {
    if let endpoint = Endpoint(of: origin) {
      return StaticResolver([endpoint]).watch(origin, on: executor, report)
    }
    let lookUp = self.lookUp
    let polling = PollingResolver(
      minimumInterval: self.minimumInterval,
      seed: self.seed,
      cancellable: { origin, _, report in
        let isCancelled = CancellationFlag()
        NIOThreadPool.singleton.submit { _ in
          // A look that is not wanted any more must not take a thread from others.
          guard !isCancelled.isRaised else { return }
          switch lookUp(origin.host) {
          case .success(let addresses):
            let endpoints = addresses.map { Endpoint(.ip($0, port: origin.port)) }
            report(.success(ResolverUpdate(endpoints: endpoints)))
          case .failure(let error):
            report(error.report(for: origin))
          }
        }
        return { isCancelled.raise() }
      }
    )
    return polling.watch(origin, on: executor, report)
  }
}

/// Tells work on another thread that nobody wants its result any more.
private final class CancellationFlag: Sendable {
  private let state = Atomic(false)

  func raise() { self.state.store(true, ordering: .relaxed) }

  var isRaised: Bool { self.state.load(ordering: .relaxed) }
}
