internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes how calls are spread over the endpoints of a cluster (gRFC A52, A42, A48, A58, A62).
enum PolicyDecoder {
  private typealias Policy = ClusterResource.Policy

  /// Policies may be nested.
  private static let maximumDepth = 16
  private static let ringSizes: ClosedRange<UInt64> = 1...UInt64(BalancingPolicy.RingHash.largestRing)

  /// The policy of a cluster.
  static func policy(of cluster: Envoy_Config_Cluster_V3_Cluster, at place: FieldPlace)
    -> ClusterResource.Policy
  {
    let policy =
      cluster.hasLoadBalancingPolicy
      ? self.policy(cluster.loadBalancingPolicy, at: place.field("load_balancing_policy"))
      : self.named(cluster, at: place)
    return policy ?? .byLocality(.roundRobin)
  }

  // MARK: - The field of old

  private static func named(_ cluster: Envoy_Config_Cluster_V3_Cluster, at place: FieldPlace) -> Policy? {
    switch cluster.lbPolicy {
    case .roundRobin: return .byLocality(.roundRobin)
    case .leastRequest:
      var choices: Google_Protobuf_UInt32Value?
      if case .leastRequestLbConfig(let config) = cluster.lbConfig {
        choices = config.hasChoiceCount ? config.choiceCount : nil
      }
      return .byLocality(self.leastRequest(choices, at: place.field("least_request_lb_config")))
    case .ringHash:
      guard case .ringHashLbConfig(let config) = cluster.lbConfig else {
        return .overall(.ringHash(self.ring()))
      }
      let place = place.field("ring_hash_lb_config")
      if config.hashFunction != .xxHash { place.field("hash_function").report("invalid hash function") }
      return .overall(
        self.ringHash(
          minimum: config.hasMinimumRingSize ? config.minimumRingSize : nil,
          maximum: config.hasMaximumRingSize ? config.maximumRingSize : nil,
          comparesDefault: false,
          at: place
        )
      )
    case .random, .maglev, .clusterProvided, .loadBalancingPolicyConfig, .UNRECOGNIZED:
      place.field("lb_policy").report("LB policy is not supported")
      return nil
    }
  }

  // MARK: - Lists of policies

  /// The first policy of the list that is known.
  private static func policy(
    _ list: Envoy_Config_Cluster_V3_LoadBalancingPolicy,
    at place: FieldPlace,
    depth: Int = 0
  ) -> Policy? {
    guard depth < self.maximumDepth else {
      place.report("exceeded max recursion depth of \(self.maximumDepth)")
      return nil
    }
    for (index, policy) in list.policies.enumerated() {
      let place = place.element("policies", index).field("typed_extension_config")
      guard policy.hasTypedExtensionConfig else {
        place.report("field not present")
        return nil
      }
      let config = policy.typedExtensionConfig.hasTypedConfig ? policy.typedExtensionConfig.typedConfig : nil
      guard let found = ExtensionMessage(config, at: place.field("typed_config")) else { return nil }
      if let fields = found.fields {
        guard CustomPolicyDecoder.isKnown(found.type) else { continue }
        return CustomPolicyDecoder.policy(found.type, fields, at: found.place)
      }
      guard let decode = self.known[found.type] else { continue }
      return decode(found, depth)
    }
    place.report("no supported load balancing policy config found")
    return nil
  }

  private typealias RoundRobin = Envoy_Extensions_LoadBalancingPolicies_RoundRobin_V3_RoundRobin
  private typealias RingHash = Envoy_Extensions_LoadBalancingPolicies_RingHash_V3_RingHash
  private typealias LeastRequest = Envoy_Extensions_LoadBalancingPolicies_LeastRequest_V3_LeastRequest
  private typealias PickFirst = Envoy_Extensions_LoadBalancingPolicies_PickFirst_V3_PickFirst
  private typealias WRRLocality = Envoy_Extensions_LoadBalancingPolicies_WrrLocality_V3_WrrLocality
  private typealias WeightedRoundRobin =
    Envoy_Extensions_LoadBalancingPolicies_ClientSideWeightedRoundRobin_V3_ClientSideWeightedRoundRobin

  /// By the type of the settings.
  private static let known: [String: @Sendable (ExtensionMessage, _ depth: Int) -> Policy?] = [
    RoundRobin.protoMessageName: { _, _ in .overall(.roundRobin) },
    PickFirst.protoMessageName: { message, _ in
      message.parse(PickFirst.self, "PickFirst LB policy config").map {
        .overall(.pickFirst(shuffles: $0.shuffleAddressList))
      }
    },
    LeastRequest.protoMessageName: { message, _ in
      message.parse(LeastRequest.self, "LeastRequest LB policy config").map {
        .overall(Self.leastRequest($0.hasChoiceCount ? $0.choiceCount : nil, at: message.place))
      }
    },
    RingHash.protoMessageName: { message, _ in
      message.parse(RingHash.self, "RingHash LB policy config").map {
        .overall(Self.ringHash($0, at: message.place))
      }
    },
    WeightedRoundRobin.protoMessageName: { message, _ in
      message.parse(WeightedRoundRobin.self, "ClientSideWeightedRoundRobin LB policy config").map {
        .overall(.weightedRoundRobin(Self.weightedRoundRobin($0, at: message.place)))
      }
    },
    WRRLocality.protoMessageName: { message, depth in
      guard let config = message.parse(WRRLocality.self, "WrrLocality LB policy config") else { return nil }
      return Self.byLocality(config, at: message.place, depth: depth)
    },
  ]

  private static func byLocality(_ config: WRRLocality, at place: FieldPlace, depth: Int) -> Policy? {
    let place = place.field("endpoint_picking_policy")
    guard config.hasEndpointPickingPolicy else {
      place.report("field not present")
      return nil
    }
    switch self.policy(config.endpointPickingPolicy, at: place, depth: depth + 1) {
    case .overall(let policy): return .byLocality(policy)
    // Within a locality there is but one.
    case .byLocality(let policy): return .byLocality(policy)
    case nil: return nil
    }
  }

  // MARK: - Policies

  private static func leastRequest(
    _ choices: Google_Protobuf_UInt32Value?,
    at place: FieldPlace
  ) -> BalancingPolicy {
    let count = choices?.value ?? 2
    if count < 2 { place.field("choice_count").report("must be at least 2") }
    return .leastRequest(choices: Int(count))
  }

  private static func ringHash(_ config: RingHash, at place: FieldPlace) -> BalancingPolicy {
    switch config.hashFunction {
    case .xxHash, .defaultHash: break
    case .murmurHash2, .UNRECOGNIZED:
      place.field("hash_function").report("unsupported value (must be XX_HASH)")
    }
    return self.ringHash(
      minimum: config.hasMinimumRingSize ? config.minimumRingSize : nil,
      maximum: config.hasMaximumRingSize ? config.maximumRingSize : nil,
      comparesDefault: true,
      at: place
    )
  }

  /// - Parameter comparesDefault: Whether the maximum may not be less than the default of the minimum: so it is for the new field in
  ///   gRPC.
  private static func ringHash(
    minimum: Google_Protobuf_UInt64Value?,
    maximum: Google_Protobuf_UInt64Value?,
    comparesDefault: Bool,
    at place: FieldPlace
  ) -> BalancingPolicy {
    let problem = "value must be in the range [1, \(self.ringSizes.upperBound)]"
    let largest = maximum?.value ?? self.ringSizes.upperBound
    if !self.ringSizes.contains(largest) { place.field("maximum_ring_size").report(problem) }
    let smallest = minimum?.value ?? 1024
    if !self.ringSizes.contains(smallest) { place.field("minimum_ring_size").report(problem) }
    if smallest > largest, comparesDefault || minimum != nil {
      place.field("minimum_ring_size").report("cannot be greater than maximum_ring_size")
    }
    return .ringHash(self.ring(minimum: smallest, maximum: largest))
  }

  /// Like gRPC's clients, this one has no rings with more than 4,096 entries, whatever the server asks for.
  private static func ring(minimum: UInt64 = 1024, maximum: UInt64 = 4096) -> BalancingPolicy.RingHash {
    BalancingPolicy.RingHash(
      minimumRingSize: Int(min(minimum, 4096)),
      maximumRingSize: Int(min(maximum, 4096))
    )
  }

  private static func weightedRoundRobin(
    _ config: WeightedRoundRobin,
    at place: FieldPlace
  ) -> BalancingPolicy.WeightedRoundRobin {
    var settings = BalancingPolicy.WeightedRoundRobin.defaults
    func duration(_ value: Google_Protobuf_Duration, _ isPresent: Bool, _ name: String, _ fallback: Duration)
      -> Duration
    {
      isPresent ? value.checked(at: place.field(name)) : fallback
    }
    let period = duration(
      config.oobReportingPeriod,
      config.hasOobReportingPeriod,
      "oob_reporting_period",
      .seconds(10)
    )
    settings = BalancingPolicy.WeightedRoundRobin(
      outOfBandPeriod: config.enableOobLoadReport.value ? period : nil,
      blackoutPeriod: duration(
        config.blackoutPeriod,
        config.hasBlackoutPeriod,
        "blackout_period",
        settings.blackoutPeriod
      ),
      expirationPeriod: duration(
        config.weightExpirationPeriod,
        config.hasWeightExpirationPeriod,
        "weight_expiration_period",
        settings.expirationPeriod
      ),
      updatePeriod: duration(
        config.weightUpdatePeriod,
        config.hasWeightUpdatePeriod,
        "weight_update_period",
        settings.updatePeriod
      ),
      errorPenalty: self.errorPenalty(config, at: place) ?? settings.errorPenalty
    )
    return settings
  }

  private static func errorPenalty(_ config: WeightedRoundRobin, at place: FieldPlace) -> Double? {
    guard config.hasErrorUtilizationPenalty else { return nil }
    let value = config.errorUtilizationPenalty.value
    // Also not a NaN.
    guard value >= 0, value.isFinite else {
      place.field("error_utilization_penalty").report("value must be non-negative")
      return nil
    }
    return Double(value)
  }
}
