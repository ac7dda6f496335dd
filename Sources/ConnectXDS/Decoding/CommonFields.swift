internal import SwiftProtobuf

extension Google_Protobuf_Duration {
  /// The time, if it is in the range of its type and not negative.
  func checked(at place: FieldPlace) -> Duration {
    let seconds: ClosedRange<Int64> = 0...315_576_000_000
    let nanos: ClosedRange<Int32> = 0...999_999_999
    if !seconds.contains(self.seconds) {
      place.field("seconds").report("value must be in the range [0, 315576000000]")
    }
    if !nanos.contains(self.nanos) {
      place.field("nanos").report("value must be in the range [0, 999999999]")
    }
    guard seconds.contains(self.seconds), nanos.contains(self.nanos) else { return .zero }
    return .seconds(self.seconds) + .nanoseconds(Int64(self.nanos))
  }
}

extension Envoy_Type_V3_FractionalPercent {
  /// At most a million; nil if the denominator is unknown.
  var perMillion: UInt32? {
    let factor: UInt64
    switch self.denominator {
    case .hundred: factor = 10_000
    case .tenThousand: factor = 100
    case .million: factor = 1
    case .UNRECOGNIZED: return nil
    }
    return UInt32(clamping: min(UInt64(self.numerator) * factor, 1_000_000))
  }
}

extension Envoy_Config_Core_V3_ConfigSource {
  /// Whether resources come from the server that sent this.
  var isSameServer: Bool {
    switch self.configSourceSpecifier {
    case .ads, .self_p: true
    case nil: false
    }
  }
}
