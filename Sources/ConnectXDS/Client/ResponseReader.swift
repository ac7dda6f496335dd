internal import Connect
internal import Logging
internal import SwiftProtobuf

/// Uses one response of a control plane. Confined to the client's executor.
struct ResponseReader {
  /// More of them would only make the request to the server longer.
  private static let maximumProblems = 100
  /// In bytes: what looks like one character may be megabytes.
  private static let maximumProblemLength = 1000

  private let client: DiscoveryClient
  private let plane: ControlPlane
  private let type: ResourceType
  private let version: String
  private let time: Duration
  private var problems: [String] = []
  private var omittedCount = 0
  private var validCount = 0
  /// Whether all resources have told their names: otherwise one that seems to be missing may be there.
  private var knowsAllNames = true
  /// The names that were in the response.
  private var names: Set<ResourceName> = []
  /// Those of them that are watched.
  private var seen: Set<ResourceKey> = []

  private init(_ client: DiscoveryClient, _ plane: ControlPlane, _ type: ResourceType, version: String) {
    self.client = client
    self.plane = plane
    self.type = type
    self.version = version
    self.time = client.environment.wallClock()
  }

  /// Uses a response. All its resources are looked at, also behind one that cannot be used.
  static func use(
    _ response: Envoy_Service_Discovery_V3_DiscoveryResponse,
    of plane: ControlPlane,
    for client: DiscoveryClient
  ) {
    // To acknowledge a type that was not asked for would subscribe to all of its resources.
    guard let type = ResourceType(url: response.typeURL), plane.hasRequested(type) else {
      client.environment.logger.warning(
        "ignored a response of \(plane.server.uri) with a type that was not asked for: \(response.typeURL)"
      )
      return
    }
    client.fallForward(to: plane)
    var reader = ResponseReader(client, plane, type, version: response.versionInfo)
    for (index, message) in response.resources.enumerated() {
      reader.read(client.decode(message, type), at: index)
    }
    if type.isDeletedByAbsence, reader.knowsAllNames { reader.deleteOthers() }
    reader.acknowledge(nonce: response.nonce)
  }

  private func acknowledge(nonce: String) {
    // What is good in a response is in use.
    if self.problems.isEmpty || self.validCount > 0 { self.plane.versions[self.type] = self.version }
    let problem = self.problem
    if let problem {
      self.client.environment.logger.error(
        "a response of \(self.plane.server.uri) (version \(self.version)) cannot be used as a whole: \(problem)"
      )
    }
    self.plane.acknowledge(self.type, nonce: nonce, problem: problem)
  }

  // MARK: - Resources that are there

  private mutating func read(_ decoded: ResourceDecoder.Decoded, at index: Int) {
    var details: String?
    if case .failure(let problem) = decoded.resource {
      details = Self.shortened(problem.problems.joined(separator: "; "))
    }
    if let details { self.add(details, at: index, decoded.name) }
    guard let text = decoded.name else {
      self.knowsAllNames = false
      return
    }
    let name: ResourceName
    do throws(ResourceName.Problem) {
      name = try ResourceName(text, of: self.type)
    } catch {
      self.add("the name cannot be used: it \(error.text)", at: index, text)
      return
    }
    guard self.names.insert(name).inserted else {
      self.add("the response has a resource of this name before", at: index, text)
      return
    }
    let key = ResourceKey(type: self.type, name: name)
    self.plane.settle(key)
    // What nobody watches is not kept. Of a server that is not asked for it, nothing is taken: another one is responsible.
    guard self.plane.asks(for: key), self.client.resource(key) != nil else { return }
    self.seen.insert(key)
    switch decoded.resource {
    case .success(let resource):
      self.validCount += 1
      self.accept(resource, decoded.message, as: key)
    case .failure:
      self.refuse(key, details ?? "")
    }
  }

  private func accept(_ resource: Resource, _ message: Google_Protobuf_Any, as key: ResourceKey) {
    self.client.update(key) { cached in
      cached.isDeletionIgnored = false
      let isNew = cached.accept(
        resource,
        message,
        version: self.version,
        time: self.time,
        from: self.plane.server
      )
      if isNew { self.client.notify(cached.watches.values, .present(resource)) }
    }
  }

  private func refuse(_ key: ResourceKey, _ details: String) {
    let message = "the \(key.type.noun) \(key.name.text) cannot be used: \(details)"
    let error = self.client.error(ConnectError(code: .invalidArgument, message: message))
    self.client.update(key) { cached in
      cached.isDeletionIgnored = false
      cached.refuse(.init(version: self.version, details: details, time: self.time), error)
      // An earlier version stays in use.
      if cached.resource == nil { self.client.notify(cached.watches.values, .missing(error)) }
    }
  }

  // MARK: - Resources that are not there

  /// Each response has all listeners, or clusters, that were asked for.
  private func deleteOthers() {
    for state in self.client.states where state.planes.last === self.plane {
      // One that never came may have been asked for after the server wrote this response.
      let others = state.resources.filter { key, cached in
        key.type == self.type && cached.resource != nil && !self.seen.contains(key)
      }
      for (key, cached) in others.sorted(by: { $0.key < $1.key }) {
        if !self.plane.server.ignoresResourceDeletion {
          self.client.remove(key, "the control plane \(self.plane.server.uri) has deleted it")
        } else if !cached.isDeletionIgnored {
          self.client.environment.logger.error(
            "\(self.plane.server.uri) has deleted the \(key.type.noun) \(key.name.text), which stays in use"
          )
          self.client.update(key) { $0.isDeletionIgnored = true }
        }
      }
    }
  }

  // MARK: - Problems

  private mutating func add(_ problem: String, at index: Int, _ name: String?) {
    guard self.problems.count < Self.maximumProblems else {
      self.omittedCount += 1
      return
    }
    let text = "resource index \(index): \(name.map { "\($0): " } ?? "")\(problem)"
    self.problems.append(Self.shortened(text))
  }

  private static func shortened(_ text: String) -> String {
    let bytes = text.utf8
    guard bytes.count > Self.maximumProblemLength else { return text }
    return String(decoding: bytes.prefix(Self.maximumProblemLength), as: UTF8.self)
  }

  /// All that is wrong, for the server; nil for nothing.
  private var problem: String? {
    guard !self.problems.isEmpty else { return nil }
    let more = self.omittedCount == 0 ? "" : "; and \(self.omittedCount) more"
    return "xDS response validation errors: [\(self.problems.joined(separator: "; "))\(more)]"
  }
}
