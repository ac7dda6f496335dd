internal import Connect
internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes the settings of filters (gRFC A39, A33).
enum FilterDecoder {
  private typealias Router = Envoy_Extensions_Filters_Http_Router_V3_Router
  private typealias Fault = Envoy_Extensions_Filters_Http_Fault_V3_HTTPFault

  /// The filters that clients know, by the type of their settings.
  static let known: [String: @Sendable (ExtensionMessage) -> ListenerResource.Filter.Kind?] = [
    Router.protoMessageName: { message in
      message.parse(Router.self, "router filter config").map { _ in .router }
    },
    Fault.protoMessageName: { message in
      Self.fault(message).map { .fault($0) }
    },
  ]

  /// The settings that take the place of those of the listener, by name of the filter.
  static func overrides(
    _ messages: [String: Google_Protobuf_Any],
    at place: FieldPlace
  ) -> [String: FilterOverride] {
    var overrides: [String: FilterOverride] = [:]
    // Sorted, so that problems have always the same order.
    for (name, message) in messages.sorted(by: { $0.key < $1.key }) {
      let place = place.entry("typed_per_filter_config", name)
      if name.isEmpty { place.report("filter name must be non-empty") }
      guard var found = ExtensionMessage(message, at: place) else { continue }
      var isOptional = false
      if found.type == Envoy_Config_Route_V3_FilterConfig.protoMessageName {
        guard let config = found.parse(Envoy_Config_Route_V3_FilterConfig.self, "FilterConfig") else {
          continue
        }
        isOptional = config.isOptional
        let inner = config.hasConfig ? config.config : nil
        guard let nested = ExtensionMessage(inner, at: found.place.field("config")) else { continue }
        found = nested
      }
      guard found.type == Fault.protoMessageName else {
        if !isOptional { found.place.report("unsupported filter type") }
        continue
      }
      if let fault = self.fault(found) { overrides[name] = .fault(fault) }
    }
    return overrides
  }

  // MARK: - Faults

  private static func fault(_ message: ExtensionMessage) -> FaultSettings? {
    guard let fault = message.parse(Fault.self, "fault injection filter config") else { return nil }
    return FaultSettings(
      delay: fault.hasDelay ? self.delay(fault.delay, at: message.place.field("delay")) : nil,
      abort: fault.hasAbort ? self.abort(fault.abort, at: message.place.field("abort")) : nil,
      maximumActive: fault.hasMaxActiveFaults ? fault.maxActiveFaults.value : nil
    )
  }

  private static func delay(
    _ delay: Envoy_Extensions_Filters_Common_Fault_V3_FaultDelay,
    at place: FieldPlace
  ) -> FaultInjection.Delay? {
    let (share, unit) = self.share(delay.hasPercentage ? delay.percentage : nil)
    switch delay.faultDelaySecifier {
    case .fixedDelay(let duration):
      let time = duration.checked(at: place.field("fixed_delay"))
      return time == .zero ? nil : FaultInjection.Delay(.fixed(time), perMillion: share)
    case .headerDelay: return FaultInjection.Delay(.header, perMillion: share, headerUnit: unit)
    case nil: return nil
    }
  }

  private static func abort(
    _ abort: Envoy_Extensions_Filters_Http_Fault_V3_FaultAbort,
    at place: FieldPlace
  ) -> FaultInjection.Abort? {
    let (share, unit) = self.share(abort.hasPercentage ? abort.percentage : nil)
    let code: Code
    switch abort.errorType {
    case .headerAbort: return FaultInjection.Abort(.header, perMillion: share, headerUnit: unit)
    case .grpcStatus(let status):
      guard let known = Code(rawValue: Int(status)) else {
        place.field("grpc_status").report("invalid gRPC status code: \(status)")
        return nil
      }
      code = known
    case .httpStatus(let status): code = status == 0 ? .ok : Code(httpStatus: Int(status))
    case nil: return nil
    }
    // A call does not end early to succeed.
    return code == .ok ? nil : FaultInjection.Abort(.fixed(code), perMillion: share)
  }

  /// The part of a million calls, and what the number 1 of a header means: one of the denominator's parts. An unknown denominator
  /// counts as a hundred here, and no percentage as 0.
  private static func share(_ percent: Envoy_Type_V3_FractionalPercent?) -> (perMillion: UInt32, unit: UInt32)
  {
    let unit: UInt32 =
      switch percent?.denominator {
      case .tenThousand: 100
      case .million: 1
      case .hundred, .UNRECOGNIZED, nil: 10_000
      }
    let parts = UInt64(percent?.numerator ?? 0) * UInt64(unit)
    return (UInt32(clamping: min(parts, 1_000_000)), unit)
  }
}
