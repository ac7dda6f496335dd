internal import Connect
internal import SwiftProtobuf

extension XDSBootstrap.Node {
  /// As control planes get it.
  var message: Envoy_Config_Core_V3_Node {
    var message = Envoy_Config_Core_V3_Node()
    message.id = self.id
    message.cluster = self.cluster
    if self.locality != XDSLocality() {
      message.locality.region = self.locality.region
      message.locality.zone = self.locality.zone
      message.locality.subZone = self.locality.subZone
    }
    // The bootstrap's reader has checked that it is an object; a program may have set anything.
    if !self.metadata.isEmpty, let metadata = try? Google_Protobuf_Struct(jsonString: self.metadata) {
      message.metadata = metadata
    }
    message.userAgentName = "connect-swift-linux"
    message.userAgentVersion = UserAgent.version
    message.clientFeatures = ["envoy.lb.does_not_support_overprovisioning", "xds.config.resource-in-sotw"]
    return message
  }
}
