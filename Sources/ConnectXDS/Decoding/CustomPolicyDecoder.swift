internal import ConnectChannels
internal import SwiftProtobuf

/// Decodes policies that are known by their names in service configs, with their JSON as a `TypedStruct` (gRFC A52).
enum CustomPolicyDecoder {
  private static let byLocality = "xds_wrr_locality_experimental"

  static func isKnown(_ name: String) -> Bool {
    name == self.byLocality || JSONPolicy.names.contains(name)
  }

  static func policy(
    _ name: String,
    _ fields: Google_Protobuf_Struct,
    at place: FieldPlace
  ) -> ClusterResource.Policy? {
    do {
      guard name == self.byLocality else {
        return try self.policy("[{\"\(name)\":\(fields.jsonString())}]").map { .overall($0) }
      }
      guard let children = fields.fields["childPolicy"] else {
        place.report("\"childPolicy\" is missing")
        return nil
      }
      return try self.policy(children.jsonString()).map { .byLocality($0) }
    } catch let error as ServiceConfigError {
      place.report("invalid LB policy config: \(error.path): \(error.problem)")
    } catch {
      place.report("invalid LB policy config: not a value of JSON")
    }
    return nil
  }

  private static func policy(_ list: String) throws -> BalancingPolicy? {
    try ServiceConfig(json: "{\"loadBalancingConfig\":\(list)}").loadBalancing
  }
}
