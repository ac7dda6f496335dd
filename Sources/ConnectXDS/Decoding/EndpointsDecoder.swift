internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes the servers of a cluster (gRFC A27, A61).
struct EndpointsDecoder {
  func decode(
    _ message: Envoy_Config_Endpoint_V3_ClusterLoadAssignment,
    at place: FieldPlace
  ) -> EndpointsResource {
    var addresses: Set<EndpointAddress> = []
    addresses.reserveCapacity(message.endpoints.reduce(0) { $0 + $1.lbEndpoints.count })
    var priorities: [UInt32: [EndpointsResource.Locality]] = [:]
    for (index, locality) in message.endpoints.enumerated() {
      let place = place.element("endpoints", index)
      guard let decoded = self.locality(locality, &addresses, at: place) else { continue }
      // There would be gaps.
      guard locality.priority < message.endpoints.count else {
        place.field("priority").report(
          "priority \(locality.priority) >= number of localities (\(message.endpoints.count))"
        )
        continue
      }
      if priorities[locality.priority]?.contains(where: { $0.name == decoded.name }) == true {
        place.report("duplicate locality \(decoded.name) found in priority \(locality.priority)")
        continue
      }
      priorities[locality.priority, default: []].append(decoded)
    }
    let resource = EndpointsResource(
      priorities: self.sorted(priorities, at: place.field("endpoints")),
      drops: self.drops(message.policy.dropOverloads, at: place.field("policy"))
    )
    return resource
  }

  private func sorted(
    _ priorities: [UInt32: [EndpointsResource.Locality]],
    at place: FieldPlace
  ) -> [[EndpointsResource.Locality]] {
    var sorted: [[EndpointsResource.Locality]] = []
    for (priority, localities) in priorities.sorted(by: { $0.key < $1.key }) {
      // The rest would be off by as much.
      guard Int(priority) == sorted.count else {
        place.report("priority \(sorted.count) empty")
        return sorted
      }
      let sum = localities.reduce(UInt64(0)) { $0 + UInt64($1.weight) }
      if sum > UInt32.max {
        place.report("sum of locality weights for priority \(priority) exceeds uint32 max")
      }
      // The order says nothing. Without it, servers that send maps do not cause changes.
      sorted.append(localities.sorted { $0.name < $1.name })
    }
    return sorted
  }

  // MARK: - Localities

  /// - Returns: Nil for localities without a weight, which get no calls, and those with problems.
  private func locality(
    _ message: Envoy_Config_Endpoint_V3_LocalityLbEndpoints,
    _ addresses: inout Set<EndpointAddress>,
    at place: FieldPlace
  ) -> EndpointsResource.Locality? {
    let problemCount = place.problemCount
    let weight = message.loadBalancingWeight.value
    if weight == 0 { return nil }
    guard message.hasLocality else {
      place.field("locality").report("field not present")
      return nil
    }
    let name = XDSLocality(
      region: message.locality.region,
      zone: message.locality.zone,
      subZone: message.locality.subZone
    )
    var endpoints: [Endpoint] = []
    endpoints.reserveCapacity(message.lbEndpoints.count)
    var sum: UInt64 = 0
    for (index, endpoint) in message.lbEndpoints.enumerated() {
      // Places are made for problems alone: there may be very many endpoints.
      func here() -> FieldPlace { place.element("lb_endpoints", index) }
      guard let decoded = self.endpoint(endpoint, at: here) else { continue }
      for address in decoded.addresses where !addresses.insert(address).inserted {
        here().report("duplicate endpoint address \"\(address)\"")
      }
      // Draining ones are checked, but get no calls.
      if endpoint.healthStatus == .draining { continue }
      sum += UInt64(decoded.weight)
      endpoints.append(decoded)
    }
    if sum > UInt32.max { place.report("sum of endpoint weights exceeds uint32 max") }
    guard place.problemCount == problemCount else { return nil }
    return EndpointsResource.Locality(name: name, weight: weight, endpoints: endpoints)
  }

  /// - Returns: Nil for endpoints that are not healthy.
  private func endpoint(
    _ message: Envoy_Config_Endpoint_V3_LbEndpoint,
    at place: () -> FieldPlace
  ) -> Endpoint? {
    switch message.healthStatus {
    case .unknown, .healthy, .draining: break
    case .unhealthy, .timeout, .degraded, .UNRECOGNIZED: return nil
    }
    let weight = message.hasLoadBalancingWeight ? message.loadBalancingWeight.value : 1
    if weight == 0 { place().field("load_balancing_weight").report("must be greater than 0") }
    guard case .endpoint(let endpoint) = message.hostIdentifier else {
      place().field("endpoint").report("field not present")
      return nil
    }
    var addresses: [EndpointAddress] = []
    let first = self.address(endpoint.hasAddress ? endpoint.address : nil) {
      place().field("endpoint").field("address")
    }
    if let first { addresses.append(first) }
    for (index, additional) in endpoint.additionalAddresses.enumerated() {
      let address = self.address(additional.hasAddress ? additional.address : nil) {
        place().field("endpoint").element("additional_addresses", index).field("address")
      }
      if let address { addresses.append(address) }
    }
    guard !addresses.isEmpty else { return nil }
    return Endpoint(addresses: addresses, weight: weight)
  }

  private func address(
    _ message: Envoy_Config_Core_V3_Address?,
    at place: () -> FieldPlace
  ) -> EndpointAddress? {
    guard let message else {
      place().report("field not present")
      return nil
    }
    guard case .socketAddress(let socket) = message.address else {
      place().field("socket_address").report("field not present")
      return nil
    }
    guard socket.portValue <= 65_535 else {
      place().field("socket_address").field("port_value").report("invalid port")
      return nil
    }
    guard let address = IPAddress(socket.address) else {
      place().field("socket_address")
        .report("failed to parse address \"\(socket.address)\": it has to be an IP address")
      return nil
    }
    return .ip(address, port: Int(socket.portValue))
  }

  // MARK: - Drops

  private func drops(
    _ messages: [Envoy_Config_Endpoint_V3_ClusterLoadAssignment.Policy.DropOverload],
    at place: FieldPlace
  ) -> [CallLimits.Drop] {
    var drops: [CallLimits.Drop] = []
    for (index, message) in messages.enumerated() {
      let place = place.element("drop_overloads", index)
      if message.category.isEmpty { place.field("category").report("empty drop category name") }
      guard message.hasDropPercentage else {
        place.field("drop_percentage").report("field not present")
        continue
      }
      guard let perMillion = message.dropPercentage.perMillion else {
        place.field("drop_percentage").field("denominator").report("unknown denominator type")
        continue
      }
      drops.append(.init(category: message.category, perMillion: perMillion))
    }
    return drops
  }
}

extension XDSLocality {
  fileprivate static func < (left: XDSLocality, right: XDSLocality) -> Bool {
    (left.region, left.zone, left.subZone) < (right.region, right.zone, right.subZone)
  }
}
