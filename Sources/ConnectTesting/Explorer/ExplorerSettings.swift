internal import Connect

/// What an ``InterceptorExplorer`` was told, but for what depends on its subject.
struct ExplorerSettings: Sendable {
  /// Makes a transport around another one.
  typealias TransportWrap = @Sendable (ExplorerWorld, any HTTPClientInterface) -> any HTTPClientInterface

  var callCount = 1
  var methods: [StreamType] = [.unary]
  var idempotency = IdempotencyLevel.unknown
  var server = ExplorerServer.answers(.ok, .unavailable, .headersThenNothing)
  var request: (@Sendable (Int) -> (text: String, headers: Headers))?
  /// Change the options of a call, with its number.
  var optionChanges: [@Sendable (_ call: Int, inout CallOptions) -> Void] = []
  var changeConfig: (@Sendable (inout ProtocolClientConfig) -> Void)?
  /// What stands between the client and the explorer's server, nearest to the server first.
  var transports: [TransportWrap] = []
  var allowance: ExplorationAllowance = []
  var scheduleCount = 1_000
  var seed: UInt64 = 1
  var hasNeighbours = true
  var patience = Duration.milliseconds(50)
  var hangLimit = Duration.seconds(10)
  var isQuiet = false
}
