internal import SwiftProtobuf

/// Decodes listeners (gRFC A27).
struct ListenerDecoder {
  private typealias Manager = Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpConnectionManager

  func decode(_ listener: Envoy_Config_Listener_V3_Listener, at place: FieldPlace) -> ListenerResource {
    let nothing = ListenerResource(routes: .named(""), filters: [])
    guard listener.hasApiListener else {
      place.field("api_listener").report("field not present: a listener for servers is of no use for clients")
      return nothing
    }
    let message = listener.apiListener.hasApiListener ? listener.apiListener.apiListener : nil
    let outer = place.field("api_listener").field("api_listener")
    guard let found = ExtensionMessage(message, at: outer) else { return nothing }
    guard found.type == Manager.protoMessageName else {
      found.place.report("unsupported filter type")
      return nothing
    }
    guard let manager = found.parse(Manager.self, "HttpConnectionManager config") else { return nothing }
    return self.decode(manager, at: found.place)
  }

  private func decode(_ manager: Manager, at place: FieldPlace) -> ListenerResource {
    if manager.xffNumTrustedHops != 0 { place.field("xff_num_trusted_hops").report("must be zero") }
    if !manager.originalIpDetectionExtensions.isEmpty {
      place.field("original_ip_detection_extensions").report("must be empty")
    }
    var maximumDuration: Duration?
    if manager.hasCommonHTTPProtocolOptions, manager.commonHTTPProtocolOptions.hasMaxStreamDuration {
      let field = place.field("common_http_protocol_options").field("max_stream_duration")
      maximumDuration = manager.commonHTTPProtocolOptions.maxStreamDuration.checked(at: field)
    }
    let filters = self.filters(manager.httpFilters, at: place)
    return ListenerResource(
      routes: self.routes(manager, at: place),
      maximumStreamDuration: maximumDuration,
      filters: filters
    )
  }

  private func routes(_ manager: Manager, at place: FieldPlace) -> ListenerResource.Routes {
    switch manager.routeSpecifier {
    case .routeConfig(let routes):
      let place = place.field("route_config")
      return .inline(RouteConfigurationDecoder(routes, at: place).decode(routes, at: place))
    case .rds(let rds):
      let place = place.field("rds")
      if !rds.hasConfigSource {
        place.field("config_source").report("field not present")
      } else if !rds.configSource.isSameServer {
        place.field("config_source").report("ConfigSource does not specify ADS or SELF")
      }
      if rds.routeConfigName.isEmpty { place.field("route_config_name").report("must be non-empty") }
      return .named(rds.routeConfigName)
    case nil:
      place.report("neither route_config nor rds fields are present")
      return .named("")
    }
  }

  // MARK: - Filters

  private func filters(
    _ messages: [Envoy_Extensions_Filters_Network_HttpConnectionManager_V3_HttpFilter],
    at place: FieldPlace
  ) -> [ListenerResource.Filter] {
    var filters: [ListenerResource.Filter] = []
    var names: Set<String> = []
    let problemCount = place.problemCount
    for (index, message) in messages.enumerated() {
      let place = place.element("http_filters", index)
      if message.name.isEmpty {
        place.field("name").report("empty filter name")
        continue
      }
      guard names.insert(message.name).inserted else {
        place.field("name").report("duplicate HTTP filter name: \(message.name)")
        continue
      }
      var config: Google_Protobuf_Any?
      if case .typedConfig(let typed) = message.configType { config = typed }
      guard let found = ExtensionMessage(config, at: place.field("typed_config")) else { continue }
      guard let decode = FilterDecoder.known[found.type] else {
        if !message.isOptional { found.place.report("unsupported filter type") }
        continue
      }
      guard let kind = decode(found) else { continue }
      filters.append(ListenerResource.Filter(name: message.name, kind: kind))
    }
    let list = place.field("http_filters")
    guard let last = filters.last else {
      // A filter that could not be read is one, too.
      if place.problemCount == problemCount { list.report("expected at least one HTTP filter") }
      return filters
    }
    for filter in filters.dropLast() where filter.kind == .router {
      list.report("terminal filter \"\(filter.name)\" must be the last filter in the chain")
    }
    if last.kind != .router {
      list.report("non-terminal filter \"\(last.name)\" is the last filter in the chain")
    }
    return filters
  }
}
