/// Where servers or clients run.
public struct XDSLocality: Sendable, Hashable {
  /// Such as a region of a provider.
  public var region: String
  /// A part of the region that fails as a whole.
  public var zone: String
  /// A part of the zone.
  public var subZone: String

  /// A place.
  public init(region: String = "", zone: String = "", subZone: String = "") {
    self.region = region
    self.zone = zone
    self.subZone = subZone
  }
}

extension XDSLocality: CustomStringConvertible {
  /// The form that gRPC's metrics have (gRFC A78). `Endpoint.zone` of endpoints is this text.
  public var description: String {
    "{region=\"\(self.region)\", zone=\"\(self.zone)\", sub_zone=\"\(self.subZone)\"}"
  }
}
