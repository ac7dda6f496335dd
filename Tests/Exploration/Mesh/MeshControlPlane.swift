internal import Connect
internal import ConnectChannels
internal import ConnectSimulation
internal import ConnectTesting
internal import ConnectXDS
internal import SwiftProtobuf

/// The resources of control planes, and how they send them.
///
/// `@unchecked Sendable`: used on the simulation's executor, and before the run.
final class MeshControlPlane: @unchecked Sendable {
  typealias Request = Envoy_Service_Discovery_V3_DiscoveryRequest
  typealias Response = Envoy_Service_Discovery_V3_DiscoveryResponse

  static let method = MethodSpec<Request, Response>(
    path: "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
    streamType: .bidirectionalStream
  )

  private let clock: VirtualClock
  private var random: SeededRandom
  private var resources: [MeshType: [String: Google_Protobuf_Any]] = [:]
  private var versions: [MeshType: Int] = [:]
  /// The versions in which resources were removed last.
  private var removals: [MeshType: Int] = [:]
  /// The longest time from a change to a response.
  var delay = Duration.milliseconds(50)
  /// Responses of nonsense that are sent before the next good one.
  private var nonsense: [Response] = []
  private(set) var acknowledgements = 0
  /// The reasons of responses that clients have refused.
  private(set) var refusals: [String] = []
  private(set) var problems: [String] = []

  init(_ clock: VirtualClock, _ random: SeededRandom) {
    self.clock = clock
    self.random = random
  }

  func set(_ type: MeshType, _ name: String, _ resource: Google_Protobuf_Any?) {
    self.resources[type, default: [:]][name] = resource
    self.versions[type, default: 0] += 1
    if resource == nil { self.removals[type] = self.versions[type] }
  }

  /// Removes all resources of a type but these.
  func keep(_ type: MeshType, _ names: [String]) {
    for name in (self.resources[type] ?? [:]).keys where !names.contains(name) { self.set(type, name, nil) }
  }

  func sendNonsense(_ response: Response) { self.nonsense.append(response) }

  // MARK: Streams

  /// What a stream has asked for and got.
  private struct Subscription {
    var names: Set<String> = []
    var nonce = ""
    /// The version that was sent last; nil if the names have changed since.
    var sent: Int?
  }

  /// `@unchecked Sendable`: used on the simulation's executor.
  private final class Stream: @unchecked Sendable {
    var subscriptions: [MeshType: Subscription] = [:]
    var count = 0
    var isOver = false
    var hasNode = false
  }

  /// Serves a stream.
  func serve(on server: SimulatedServer) {
    server.onBidirectionalStream(Self.method) { requests, responses, context in
      let stream = Stream()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          defer { stream.isOver = true }
          for try await request in requests { self.take(request, stream) }
        }
        while !stream.isOver {
          try await context.sleep(for: self.nextDelay())
          while !stream.isOver, let response = self.nextResponse(stream) {
            try await responses.send(response)
          }
        }
        try await group.waitForAll()
      }
    }
  }

  private func nextDelay() -> Duration {
    max(.milliseconds(1), self.delay.scaled(by: self.random.fraction()))
  }

  private func take(_ request: Request, _ stream: Stream) {
    guard let type = MeshType.allCases.first(where: { $0.url == request.typeURL }) else {
      // An answer to nonsense of an unknown type.
      return
    }
    if !stream.hasNode, request.node.id != "explorer" {
      self.problems.append("the first request has no node")
    }
    stream.hasNode = true
    var subscription = stream.subscriptions[type] ?? Subscription()
    // An answer to an earlier response.
    if !request.responseNonce.isEmpty, request.responseNonce != subscription.nonce { return }
    if !request.responseNonce.isEmpty {
      if request.hasErrorDetail {
        self.refusals.append(request.errorDetail.message)
      } else {
        self.acknowledgements += 1
      }
    }
    let names = Set(request.resourceNames)
    if request.responseNonce.isEmpty || names != subscription.names {
      subscription.names = names
      subscription.sent = nil
    }
    stream.subscriptions[type] = subscription
  }

  /// Whether the next response of a type has less than the last one.
  private func removes(_ type: MeshType, _ stream: Stream) -> Bool {
    guard let removal = self.removals[type] else { return false }
    return stream.subscriptions[type]?.sent.map { $0 < removal } ?? true
  }

  private func nextResponse(_ stream: Stream) -> Response? {
    if !self.nonsense.isEmpty, !stream.subscriptions.isEmpty {
      var response = self.nonsense.removeFirst()
      stream.count += 1
      response.nonce = "n\(stream.count)"
      if let type = MeshType.allCases.first(where: { $0.url == response.typeURL }) {
        guard stream.subscriptions[type] != nil else { return nil }
        stream.subscriptions[type]?.nonce = response.nonce
        // What is true follows.
        stream.subscriptions[type]?.sent = nil
      }
      return response
    }
    var due: [MeshType] = []
    for type in MeshType.allCases {
      guard let subscription = stream.subscriptions[type], !subscription.names.isEmpty else { continue }
      if subscription.sent != self.versions[type, default: 0] { due.append(type) }
    }
    // What goes is not used any more: new routes are there before.
    let isLast = due.contains(.listener) || due.contains(.routes)
    if isLast { due.removeAll { ($0 == .cluster || $0 == .endpoints) && self.removes($0, stream) } }
    guard !due.isEmpty else { return nil }
    let type = due[self.random.index(below: due.count)]
    let version = self.versions[type, default: 0]
    stream.count += 1
    let nonce = "n\(stream.count)"
    let names = stream.subscriptions[type]?.names ?? []
    stream.subscriptions[type]?.sent = version
    stream.subscriptions[type]?.nonce = nonce
    let known = self.resources[type] ?? [:]
    return .with {
      $0.versionInfo = "\(version)"
      $0.nonce = nonce
      $0.typeURL = type.url
      $0.resources = names.sorted().compactMap { known[$0] }
    }
  }
}
