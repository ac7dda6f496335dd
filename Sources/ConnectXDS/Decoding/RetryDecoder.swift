internal import Connect
internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes retry policies (gRFC A44).
enum RetryDecoder {
  private static let codes: [String: Code] = [
    "cancelled": .canceled,
    "deadline-exceeded": .deadlineExceeded,
    "internal": .internalError,
    "resource-exhausted": .resourceExhausted,
    "unavailable": .unavailable,
  ]

  /// - Returns: Nil if calls are never repeated: none of the conditions is known.
  static func policy(_ message: Envoy_Config_Route_V3_RetryPolicy, at place: FieldPlace) -> MethodConfig
    .RetryPolicy?
  {
    let codes = message.retryOn.split(separator: ",").compactMap { self.codes[String($0)] }
    let retries = message.hasNumRetries ? message.numRetries.value : 1
    if retries == 0 { place.field("num_retries").report("must be greater than 0") }
    var base = Duration.milliseconds(25)
    var maximum: Duration?
    if message.hasRetryBackOff {
      let place = place.field("retry_back_off")
      let backoff = message.retryBackOff
      if backoff.hasBaseInterval {
        // A shorter one counts as this.
        base = max(backoff.baseInterval.checked(at: place.field("base_interval")), .milliseconds(1))
      } else {
        place.field("base_interval").report("field not present")
      }
      if backoff.hasMaxInterval { maximum = backoff.maxInterval.checked(at: place.field("max_interval")) }
    }
    guard !codes.isEmpty else { return nil }
    return MethodConfig.RetryPolicy(
      maximumAttempts: min(Int(retries) + 1, MethodConfig.maximumAttempts),
      initialBackoff: base,
      maximumBackoff: max(maximum ?? base * 10, base),
      backoffMultiplier: 2,
      retryableCodes: Set(codes)
    )
  }
}
