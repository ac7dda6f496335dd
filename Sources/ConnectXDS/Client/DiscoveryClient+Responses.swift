internal import Connect
internal import Logging
internal import SwiftProtobuf

extension ResourceDecoder {
  typealias Message = Google_Protobuf_Any
}

/// What a response was found to be, resource by resource.
private struct Verdict {
  /// More of them would only make the request to the server longer.
  private static let maximumProblems = 100

  let version: String
  let time: Duration
  private var problems: [String] = []
  private var omittedCount = 0
  var validCount = 0
  /// The names that were in the response.
  var names: Set<ResourceName> = []
  /// Those of them that are watched.
  var seen: Set<ResourceKey> = []

  init(version: String, time: Duration) {
    self.version = version
    self.time = time
  }

  mutating func add(_ problem: String, at index: Int, _ name: String?) {
    guard self.problems.count < Self.maximumProblems else {
      self.omittedCount += 1
      return
    }
    self.problems.append("resource index \(index): \(name.map { "\($0): " } ?? "")\(problem)")
  }

  /// Nil if there is none.
  var text: String? {
    guard !self.problems.isEmpty else { return nil }
    let more = self.omittedCount == 0 ? "" : "; and \(self.omittedCount) more"
    return "xDS response validation errors: [\(self.problems.joined(separator: "; "))\(more)]"
  }

  var isAcceptable: Bool { self.problems.isEmpty || self.validCount > 0 }
}

extension DiscoveryClient {
  private var logger: Logger { self.environment.logger }

  /// Uses a response. All its resources are looked at, also behind one that cannot be used.
  func received(_ response: Envoy_Service_Discovery_V3_DiscoveryResponse, from plane: ControlPlane) {
    // To acknowledge a type that was not asked for would subscribe to all of its resources.
    guard let type = ResourceType(url: response.typeURL), plane.hasRequested(type) else {
      self.logger.warning(
        "ignored a response of \(plane.server.uri) with resources that were not asked for: \(response.typeURL)"
      )
      return
    }
    self.fallForward(to: plane)
    var verdict = Verdict(version: response.versionInfo, time: self.wallClock())
    for (index, message) in response.resources.enumerated() {
      self.use(self.decode(message, type), at: index, of: type, from: plane, &verdict)
    }
    if type.isDeletedByAbsence { self.deleteOthers(than: verdict.seen, of: type, at: plane) }
    if verdict.isAcceptable { plane.versions[type] = response.versionInfo }
    if let problem = verdict.text {
      self.logger.error(
        "a response of \(plane.server.uri) has \(type.noun)s that cannot be used (version \(verdict.version)): \(problem)"
      )
    }
    plane.acknowledge(type, nonce: response.nonce, problem: verdict.text)
  }

  private func use(
    _ decoded: ResourceDecoder.Decoded,
    at index: Int,
    of type: ResourceType,
    from plane: ControlPlane,
    _ verdict: inout Verdict
  ) {
    let problem = decoded.problem
    if let problem { verdict.add(problem, at: index, decoded.name) }
    guard let text = decoded.name else { return }
    let name: ResourceName
    do throws(ResourceName.Problem) {
      name = try ResourceName(text, of: type)
    } catch {
      verdict.add("the name cannot be used: it \(error.text)", at: index, text)
      return
    }
    guard verdict.names.insert(name).inserted else {
      verdict.add("the response has a resource of this name before", at: index, text)
      return
    }
    let key = ResourceKey(type: type, name: name)
    plane.settle(key)
    guard self.resource(key) != nil else { return }
    verdict.seen.insert(key)
    switch decoded.resource {
    case .success(let resource):
      verdict.validCount += 1
      self.accept(resource, decoded.message, as: key, from: plane, verdict)
    case .failure:
      self.refuse(problem ?? "", key, verdict)
    }
  }

  private func accept(
    _ resource: Resource,
    _ message: ResourceDecoder.Message,
    as key: ResourceKey,
    from plane: ControlPlane,
    _ verdict: Verdict
  ) {
    self.update(key) { cached in
      if cached.isDeletionIgnored {
        self.logger.info("the \(key.type.noun) \(key.name.text) is back, whose deletion was ignored")
        cached.isDeletionIgnored = false
      }
      let isNew = cached.accept(
        resource,
        message,
        version: verdict.version,
        time: verdict.time,
        from: plane.server
      )
      if isNew { self.notify(cached.watches.values, .present(resource)) }
    }
  }

  private func refuse(_ details: String, _ key: ResourceKey, _ verdict: Verdict) {
    let error = self.error(
      ConnectError(
        code: .invalidArgument,
        message: "the \(key.type.noun) \(key.name.text) cannot be used: \(details)"
      )
    )
    self.update(key) { cached in
      cached.isDeletionIgnored = false
      cached.refuse(.init(version: verdict.version, details: details, time: verdict.time), error)
      // An earlier version stays in use.
      if cached.resource == nil { self.notify(cached.watches.values, .missing(error)) }
    }
  }

  // MARK: - Resources that are not there

  /// Each response has all listeners, or clusters, that were asked for.
  private func deleteOthers(than seen: Set<ResourceKey>, of type: ResourceType, at plane: ControlPlane) {
    for state in self.authorities.values where state.planes.last === plane {
      for (key, cached) in state.resources where key.type == type && !seen.contains(key) {
        // One that never came may have been asked for after the server wrote this response.
        guard cached.resource != nil else { continue }
        if !plane.server.ignoresResourceDeletion {
          self.remove(key, "the control plane \(plane.server.uri) has deleted it")
        } else if !cached.isDeletionIgnored {
          self.logger.error(
            "\(plane.server.uri) has deleted the \(type.noun) \(key.name.text), which stays in use (ignore_resource_deletion)"
          )
          self.update(key) { $0.isDeletionIgnored = true }
        }
      }
    }
  }

  /// The server has not sent resources in time.
  func isMissing(_ keys: [ResourceKey], at plane: ControlPlane) {
    for key in keys {
      guard let cached = self.resource(key), cached.resource == nil, cached.status != .doesNotExist else {
        continue
      }
      self.remove(key, "the control plane \(plane.server.uri) has not sent it within \(ControlPlane.patience)")
    }
  }

  private func remove(_ key: ResourceKey, _ reason: String) {
    let error = self.error(
      ConnectError(
        code: .notFound,
        message: "the \(key.type.noun) \(key.name.text) does not exist: \(reason)"
      )
    )
    self.logger.info("\(error.message ?? "")")
    self.update(key) { cached in
      cached.remove(error)
      self.notify(cached.watches.values, .missing(error))
    }
  }
}

extension ResourceDecoder.Decoded {
  /// All that is wrong with the resource; nil for nothing.
  fileprivate var problem: String? {
    guard case .failure(let problem) = self.resource else { return nil }
    return problem.problems.joined(separator: "; ")
  }
}
