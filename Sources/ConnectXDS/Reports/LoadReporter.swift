internal import Connect
internal import ConnectChannels
internal import SwiftProtobuf

/// A stream of load reports to a server.
protocol LoadReportStream: AnyObject {
  /// - Parameter completion: Called once, on the executor, when the request is on its way, or cannot be sent.
  func send(
    _ request: Envoy_Service_LoadStats_V3_LoadStatsRequest,
    completion: @escaping @Sendable () -> Void
  )
  /// Lets one more response come.
  func requestNext()
  func cancel()
}

/// Reports loads to one server (`envoy.service.load_stats.v3`), while there are clusters whose loads are reported.
///
/// The server says which clusters it wants, and how often. A lost stream begins again with a backoff: 1 s, times 1.6 with each
/// failure, up to 120 s, with a jitter of 20 %.
///
/// `@unchecked Sendable`: touched on `executor` alone.
final class LoadReporter: @unchecked Sendable {
  /// What comes of a stream. To be called on the executor, not within `open`.
  enum Event: Sendable {
    case response(Envoy_Service_LoadStats_V3_LoadStatsResponse)
    case end
  }

  typealias Open = (_ handle: @escaping @Sendable (Event) -> Void) -> any LoadReportStream

  /// Servers cannot have reports more often, as in gRPC.
  static let shortestInterval = Duration.seconds(1)

  private struct Orders: Equatable {
    /// Nil for all.
    var clusters: Set<String>?
    var interval: Duration
  }

  private let executor: any CallExecutor
  private let table: StatisticsTable
  private let node: Envoy_Config_Core_V3_Node
  private let open: Open
  private var stream: (any LoadReportStream)?
  /// Distinguishes streams.
  private var number = 0
  /// Nil until the server has answered.
  private var orders: Orders?
  private var timer: (any CallTimer)?
  private var failures = 0
  private var random: SeededRandom
  /// Whether the last report had no counts: further ones are not sent.
  private var wasEmpty = false
  /// Whether a request waits for a server that does not read: nothing is taken from the counts meanwhile.
  private var isSending = false
  private var isShutDown = false

  init(
    _ table: StatisticsTable,
    _ node: Envoy_Config_Core_V3_Node,
    on executor: any CallExecutor,
    random: SeededRandom,
    open: @escaping Open
  ) {
    self.table = table
    self.node = node
    self.executor = executor
    self.random = random
    self.open = open
    table.onChange = { [weak self] in self?.check() }
  }

  func shutDown() {
    self.isShutDown = true
    self.stop()
  }

  /// Begins or ends the stream, as clusters need it.
  private func check() {
    guard !self.isShutDown else { return }
    // Counts that nobody has asked for are of no use.
    if self.orders == nil { self.table.dropUnused() }
    if self.table.reported.isEmpty {
      // The last report is to arrive.
      if self.orders == nil || !self.isSending { self.stop() }
    } else if self.stream == nil, self.timer == nil {
      self.begin()
    }
  }

  private func begin() {
    self.number += 1
    let number = self.number
    let stream = self.open { [weak self] event in
      guard let self, self.number == number, let stream = self.stream else { return }
      switch event {
      case .response(let response):
        self.received(response)
        stream.requestNext()
      case .end: self.ended()
      }
    }
    self.stream = stream
    var request = Envoy_Service_LoadStats_V3_LoadStatsRequest()
    request.node = self.node
    self.send(request, on: stream)
  }

  private func send(_ request: Envoy_Service_LoadStats_V3_LoadStatsRequest, on stream: any LoadReportStream) {
    self.isSending = true
    let number = self.number
    stream.send(request) { [weak self] in
      guard let self, self.number == number, self.stream != nil else { return }
      self.isSending = false
      self.check()
    }
  }

  private func stop() {
    self.timer?.cancel()
    self.timer = nil
    self.stream.take()?.cancel()
    self.isSending = false
    self.orders = nil
    self.failures = 0
    self.wasEmpty = false
  }

  private func ended() {
    self.timer?.cancel()
    self.failures = self.orders == nil ? self.failures + 1 : 1
    self.stream = nil
    self.isSending = false
    self.orders = nil
    self.wasEmpty = false
    self.table.dropUnused()
    guard !self.table.reported.isEmpty else { return self.stop() }
    var delay = 1.0
    for _ in 1..<min(self.failures, 20) { delay = min(delay * 1.6, 120) }
    delay *= 0.8 + 0.4 * self.random.fraction()
    self.timer = self.executor.schedule(after: .seconds(delay)) { [weak self] in
      self?.timer = nil
      self?.check()
    }
  }

  private func received(_ response: Envoy_Service_LoadStats_V3_LoadStatsResponse) {
    let seconds = min(max(response.loadReportingInterval.seconds, 0), 1_000_000_000)
    let interval = Duration.seconds(seconds) + .nanoseconds(Int64(response.loadReportingInterval.nanos))
    let orders = Orders(
      clusters: response.sendAllClusters ? nil : Set(response.clusters),
      interval: max(interval, Self.shortestInterval)
    )
    let isOtherInterval = self.orders?.interval != orders.interval
    self.orders = orders
    if isOtherInterval { self.scheduleReport(after: orders.interval) }
  }

  private func scheduleReport(after interval: Duration) {
    self.timer?.cancel()
    self.timer = self.executor.schedule(after: interval) { [weak self] in self?.report() }
  }

  private func report() {
    self.timer = nil
    guard let stream, let orders else { return }
    guard !self.isSending else { return self.scheduleReport(after: orders.interval) }
    let counted = self.table.take(orders.clusters, now: self.executor.now)
    let isEmpty = counted.allSatisfy(\.counts.isEmpty)
    if !(isEmpty && self.wasEmpty) {
      var request = Envoy_Service_LoadStats_V3_LoadStatsRequest()
      request.clusterStats = counted.map(\.message)
      self.send(request, on: stream)
    }
    self.wasEmpty = isEmpty
    self.check()
    if self.stream != nil { self.scheduleReport(after: orders.interval) }
  }
}
