/// The shards of a client: one for each executor among which the transport spreads calls.
struct ClientShards: Sendable {
  /// What calls on one executor need, for all protocols that the client may speak.
  struct Shard: Sendable {
    /// The environment of the preferred protocol. Calls in all protocols live on its executor.
    let environment: CallEnvironment
    /// Nil if the client speaks one protocol.
    let choices: ProtocolChoices?

    /// What a call with another codec needs.
    func using(_ codec: any Codec) -> (ProtocolChoices?, CallEnvironment) {
      guard let choices = self.choices?.using(codec) else {
        return (nil, CallEnvironment(self.environment, using: codec))
      }
      return (choices, choices.current)
    }
  }

  /// What all shards have in common.
  fileprivate struct Shared {
    let memory: ProtocolMemory
    let ruleWarnings: RuleWarnings
  }

  let first: Shard
  private let others: [Shard]

  init(_ config: ProtocolClientConfig, _ httpClient: any HTTPClientInterface, clientIdentity: UInt64?) {
    let shared = Shared(memory: ProtocolMemory(), ruleWarnings: RuleWarnings())
    func makeShard(on executor: (any CallExecutor)?, load: CallLoad?) -> Shard {
      Shard(config, httpClient, clientIdentity: clientIdentity, on: executor, load: load, shared)
    }
    let executors = httpClient.executors
    guard executors.count > 1 else {
      self.first = makeShard(on: executors.first, load: nil)
      self.others = []
      return
    }
    self.first = makeShard(on: executors[0], load: CallLoad())
    self.others = executors.dropFirst().map { makeShard(on: $0, load: CallLoad()) }
  }

  var all: [Shard] { [self.first] + self.others }

  /// The shard for a new call: on the executor that the caller runs on, else on the one with the fewest calls. The shard
  /// counts the call until it ends.
  func take() -> Shard {
    if self.others.isEmpty { return self.first }
    let shard = self.current ?? self.leastLoaded
    shard.environment.load?.callBegan()
    return shard
  }

  private var current: Shard? {
    if self.first.environment.executor.isCurrent { return self.first }
    return self.others.first { $0.environment.executor.isCurrent }
  }

  private var leastLoaded: Shard {
    var best = self.first
    var least = self.first.loadCount
    for shard in self.others {
      let count = shard.loadCount
      if count < least { (best, least) = (shard, count) }
    }
    return best
  }
}

extension ClientShards.Shard {
  fileprivate init(
    _ config: ProtocolClientConfig,
    _ httpClient: any HTTPClientInterface,
    clientIdentity: UInt64?,
    on executor: (any CallExecutor)?,
    load: CallLoad?,
    _ shared: ClientShards.Shared
  ) {
    func makeEnvironment(_ wire: any WireProtocol, on executor: (any CallExecutor)?) -> CallEnvironment {
      config.makeEnvironment(
        wire,
        httpClient,
        clientIdentity: clientIdentity,
        shared.ruleWarnings,
        on: executor,
        load: load
      )
    }
    var usable: [CallEnvironment] = []
    var unusable: CallEnvironment?
    for wire in config.networkProtocol.wires {
      let environment = makeEnvironment(wire, on: usable.first?.executor ?? executor)
      // The HTTP client may not be allowed to speak HTTP/2.
      if environment.hostError == nil {
        usable.append(environment)
      } else {
        unusable = unusable ?? environment
      }
    }
    self.environment =
      usable.first ?? unusable ?? makeEnvironment(config.networkProtocol.wire, on: executor)
    self.choices = usable.count > 1 ? ProtocolChoices(usable, shared.memory) : nil
  }

  fileprivate var loadCount: Int { self.environment.load?.count ?? 0 }
}

extension ProtocolClientConfig {
  /// - Parameters:
  ///   - executor: The executor of the calls; nil for the transport's choice.
  ///   - load: Counts the calls on the executor.
  fileprivate func makeEnvironment(
    _ wire: any WireProtocol,
    _ httpClient: any HTTPClientInterface,
    clientIdentity: UInt64?,
    _ ruleWarnings: RuleWarnings,
    on executor: (any CallExecutor)?,
    load: CallLoad?
  ) -> CallEnvironment {
    let acceptedEncodings = AcceptedEncodings(self.compression.responses)
    return CallEnvironment(
      settings: self.callSettings,
      httpClient: httpClient,
      host: self.host,
      on: executor,
      load: load,
      problem: self.networkProtocol.problem,
      writers: RequestWriters(
        wire: wire,
        codecName: self.codec.name,
        unaryGET: self.unaryGET,
        compression: self.compression,
        acceptedEncodings: acceptedEncodings,
        maximumMessageSize: self.limits.maximumSentMessageSize
      ),
      decoders: DecoderMaker(
        wire: wire,
        acceptedEncodings: acceptedEncodings,
        maximumMessageSize: self.limits.maximumReceivedMessageSize,
        buffers: nil
      ),
      codec: self.codec,
      unaryGET: self.unaryGET,
      clientIdentity: clientIdentity,
      ruleWarnings: ruleWarnings,
      logger: self.logger
    )
  }

  private var callSettings: CallEnvironment.Settings {
    CallEnvironment.Settings(
      maximumRetries: self.retries.maximumRetries,
      maximumReplayBytes: self.retries.maximumReplayBytes,
      maximumWaitingValues: self.limits.maximumWaitingValues,
      maximumQueuedMessages: self.limits.maximumQueuedMessages,
      holdingPatience: self.hookWarnings.holding,
      hedging: self.hedging,
      waitForReady: self.waitForReady
    )
  }
}
