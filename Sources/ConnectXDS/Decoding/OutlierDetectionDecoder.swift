internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes the settings of outlier detection (gRFC A50).
enum OutlierDetectionDecoder {
  static func decode(
    _ message: Envoy_Config_Cluster_V3_OutlierDetection,
    at place: FieldPlace
  ) -> OutlierDetection {
    // An algorithm is on only if its share of enforcement is given, as in gRPC.
    var settings = OutlierDetection(successRate: nil, failurePercentage: nil)
    let base =
      message.hasBaseEjectionTime
      ? message.baseEjectionTime.checked(at: place.field("base_ejection_time")) : settings.baseEjectionTime
    let maximum =
      message.hasMaxEjectionTime
      ? message.maxEjectionTime.checked(at: place.field("max_ejection_time")) : settings.maximumEjectionTime
    settings = OutlierDetection(
      interval: message.hasInterval
        ? message.interval.checked(at: place.field("interval")) : settings.interval,
      baseEjectionTime: base,
      maximumEjectionTime: maximum,
      maximumEjectionPercent: self.percent(
        message.hasMaxEjectionPercent ? message.maxEjectionPercent : nil,
        at: place.field("max_ejection_percent")
      ) ?? settings.maximumEjectionPercent,
      successRate: self.successRate(message, at: place),
      failurePercentage: self.failurePercentage(message, at: place)
    )
    return settings
  }

  private static func successRate(
    _ message: Envoy_Config_Cluster_V3_OutlierDetection,
    at place: FieldPlace
  ) -> OutlierDetection.SuccessRate? {
    let enforcing = self.percent(
      message.hasEnforcingSuccessRate ? message.enforcingSuccessRate : nil,
      at: place.field("enforcing_success_rate")
    )
    guard let enforcing, enforcing != 0 else { return nil }
    var settings = OutlierDetection.SuccessRate(enforcement: enforcing)
    if message.hasSuccessRateMinimumHosts {
      settings.minimumHosts = Int(message.successRateMinimumHosts.value)
    }
    if message.hasSuccessRateRequestVolume {
      settings.minimumCalls = Int(message.successRateRequestVolume.value)
    }
    if message.hasSuccessRateStdevFactor {
      settings.deviations = Double(message.successRateStdevFactor.value) / 1000
    }
    return settings
  }

  private static func failurePercentage(
    _ message: Envoy_Config_Cluster_V3_OutlierDetection,
    at place: FieldPlace
  ) -> OutlierDetection.FailurePercentage? {
    let enforcing = self.percent(
      message.hasEnforcingFailurePercentage ? message.enforcingFailurePercentage : nil,
      at: place.field("enforcing_failure_percentage")
    )
    guard let enforcing, enforcing != 0 else { return nil }
    var settings = OutlierDetection.FailurePercentage(enforcement: enforcing)
    // More than 100 is not refused, as in gRPC.
    if message.hasFailurePercentageThreshold {
      settings.threshold = Int(message.failurePercentageThreshold.value)
    }
    if message.hasFailurePercentageMinimumHosts {
      settings.minimumHosts = Int(message.failurePercentageMinimumHosts.value)
    }
    if message.hasFailurePercentageRequestVolume {
      settings.minimumCalls = Int(message.failurePercentageRequestVolume.value)
    }
    return settings
  }

  private static func percent(_ value: Google_Protobuf_UInt32Value?, at place: FieldPlace) -> Int? {
    guard let value else { return nil }
    if value.value > 100 { place.report("value must be <= 100") }
    return Int(min(value.value, 100))
  }
}
