internal import SwiftProtobuf

/// How fields behave, according to a proto file's syntax or edition and the `features` in its options.
struct Features {
  enum Presence {
    case explicit, implicit, required
  }

  var presence: Presence
  /// Whether repeated numbers are packed.
  var isPacked: Bool
  /// Whether messages are encoded as groups.
  var isDelimited = false

  /// nil if the syntax is unknown.
  init?(_ file: Google_Protobuf_FileDescriptorProto) {
    switch file.syntax {
    case "", "proto2": self.init(presence: .explicit, isPacked: false)
    case "proto3": self.init(presence: .implicit, isPacked: true)
    case "editions": self.init(presence: .explicit, isPacked: true)
    default: return nil
    }
    if file.options.hasFeatures { self.override(by: file.options.features) }
  }

  private init(presence: Presence, isPacked: Bool) {
    self.presence = presence
    self.isPacked = isPacked
  }

  func overridden(by features: Google_Protobuf_FeatureSet?) -> Features {
    var result = self
    if let features { result.override(by: features) }
    return result
  }

  private mutating func override(by features: Google_Protobuf_FeatureSet) {
    switch features.fieldPresence {
    case .explicit: self.presence = .explicit
    case .implicit: self.presence = .implicit
    case .legacyRequired: self.presence = .required
    case .unknown: break
    }
    switch features.repeatedFieldEncoding {
    case .packed: self.isPacked = true
    case .expanded: self.isPacked = false
    case .unknown: break
    }
    switch features.messageEncoding {
    case .delimited: self.isDelimited = true
    case .lengthPrefixed: self.isDelimited = false
    case .unknown: break
    }
  }
}
