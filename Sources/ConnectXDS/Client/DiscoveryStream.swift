/// What one ADS stream has asked for and heard: the protocol's variant "state of the world", without I/O.
///
/// One request is in flight at a time. What changes meanwhile goes into later requests, one for each type, so that a server that
/// does not read holds up no more than these.
struct DiscoveryStream {
  /// A resource in this stream's requests. The number tells a subscription from an earlier one of the same name.
  struct Subscription: Hashable {
    var key: ResourceKey
    var number: UInt64
  }

  private struct Interest {
    var number: UInt64
    /// Whether a request had it.
    var isSent = false
    /// Whether the server owes an answer, and a timer runs.
    var isAwaited = false
    /// Whether the server has sent it, or the timer is over.
    var isSettled = false
  }

  private struct Topic {
    var nonce = ""
    /// What was wrong in the last response; goes into the next request.
    var problem: String?
    var wasRequested = false
    var interests: [ResourceName: Interest] = [:]
  }

  private var topics: [ResourceType: Topic] = [:]
  /// The types with something to say, the first one first.
  private var waiting: [ResourceType] = []
  private var inFlight: ResourceType?
  /// Whether requests reach the server.
  private var hasStarted = false
  /// Whether the transport has taken the request in flight.
  private var isTaken = false
  private var hasSentNode = false
  private var lastNumber: UInt64 = 0
  /// Whether there was a response that could be used: then the server is healthy, and a loss is no failure of it.
  var hasResponded = false

  /// A new stream, which asks for these resources.
  init(_ keys: some Sequence<ResourceKey>) {
    for key in keys { self.subscribe(to: key) }
    // Listeners come before what they name, in each run.
    self.waiting = ResourceType.allCases.filter { self.waiting.contains($0) }
  }

  // MARK: - Interest

  mutating func subscribe(to key: ResourceKey) {
    guard self.topics[key.type]?.interests[key.name] == nil else { return }
    self.lastNumber += 1
    self.topics[key.type, default: Topic()].interests[key.name] = Interest(number: self.lastNumber)
    self.enqueue(key.type)
  }

  mutating func unsubscribe(from key: ResourceKey) {
    // The topic stays: its nonce is needed if there is interest in the type again.
    guard self.topics[key.type]?.interests.removeValue(forKey: key.name) != nil else { return }
    self.enqueue(key.type)
  }

  /// Whether this stream has asked for a type. Nothing else may be acknowledged: an empty list of names in the first request
  /// of a type means all resources.
  func hasRequested(_ type: ResourceType) -> Bool {
    self.topics[type]?.wasRequested ?? false
  }

  private mutating func enqueue(_ type: ResourceType) {
    // Interest that came and went before a request had it.
    if !self.hasRequested(type), self.topics[type]?.interests.isEmpty ?? true {
      self.waiting.removeAll { $0 == type }
      return
    }
    if !self.waiting.contains(type) { self.waiting.append(type) }
  }

  // MARK: - Requests

  /// The next request; nil if there is nothing to say, or one is in flight.
  ///
  /// - Parameters:
  ///   - versions: The versions that were accepted last from this server, also in earlier streams.
  ///   - node: Who this client is; only the first request says it.
  mutating func nextRequest(
    versions: [ResourceType: String],
    node: Envoy_Config_Core_V3_Node
  ) -> Envoy_Service_Discovery_V3_DiscoveryRequest? {
    guard self.inFlight == nil, !self.waiting.isEmpty else { return nil }
    let type = self.waiting.removeFirst()
    var topic = self.topics[type] ?? Topic()
    var request = Envoy_Service_Discovery_V3_DiscoveryRequest()
    request.typeURL = type.url
    request.versionInfo = versions[type] ?? ""
    request.responseNonce = topic.nonce
    request.resourceNames = topic.interests.keys.sorted().map(\.text)
    if let problem = topic.problem {
      request.errorDetail.code = 3
      request.errorDetail.message = problem
    }
    if !self.hasSentNode { request.node = node }
    self.hasSentNode = true
    topic.problem = nil
    topic.wasRequested = true
    for name in topic.interests.keys { topic.interests[name]?.isSent = true }
    self.topics[type] = topic
    self.inFlight = type
    return request
  }

  /// The stream has a connection.
  ///
  /// - Returns: What is newly awaited.
  mutating func didStart() -> [Subscription] {
    self.hasStarted = true
    return self.requestDidGoOut()
  }

  /// The transport has taken the request in flight, and takes another one.
  ///
  /// - Returns: What is newly awaited. A request that waits for a connection is not due yet, and stays in flight: connecting may
  ///   take longer than the server has for an answer.
  mutating func requestWasTaken() -> [Subscription] {
    self.isTaken = true
    return self.requestDidGoOut()
  }

  /// What the request asked for is due from now on.
  private mutating func requestDidGoOut() -> [Subscription] {
    guard self.hasStarted, self.isTaken, let type = self.inFlight.take(), var topic = self.topics[type] else {
      return []
    }
    self.isTaken = false
    var awaited: [Subscription] = []
    for (name, interest) in topic.interests
    where interest.isSent && !interest.isAwaited && !interest.isSettled {
      topic.interests[name]?.isAwaited = true
      awaited.append(Subscription(key: ResourceKey(type: type, name: name), number: interest.number))
    }
    self.topics[type] = topic
    return awaited.sorted { $0.key < $1.key }
  }

  // MARK: - Responses

  /// A response was used: the next request of this type says so.
  ///
  /// - Parameter problem: What was wrong in it; nil if all was accepted.
  mutating func acknowledge(_ type: ResourceType, nonce: String, problem: String?) {
    self.hasResponded = true
    self.topics[type, default: Topic()].nonce = nonce
    self.topics[type]?.problem = problem
    self.enqueue(type)
  }

  /// The server has sent the resource, usable or not.
  mutating func settle(_ key: ResourceKey) {
    self.topics[key.type]?.interests[key.name]?.isSettled = true
  }

  /// The time for a resource is over.
  ///
  /// - Returns: Whether the server still owes it.
  mutating func expire(_ subscription: Subscription) -> Bool {
    let key = subscription.key
    guard let interest = self.topics[key.type]?.interests[key.name],
      interest.number == subscription.number, !interest.isSettled
    else { return false }
    self.topics[key.type]?.interests[key.name]?.isSettled = true
    return true
  }
}
