@testable internal import ConnectXDS

/// Valid resources with most of what is decoded.
enum ResourceExamples {
  static let all: [(ResourceType, String)] = [
    (.listener, Self.listener), (.routeConfiguration, Self.routes), (.cluster, Self.cluster),
    (.cluster, Self.aggregate), (.cluster, Self.dns), (.endpoints, Self.endpoints),
  ]

  private static let fault = ResourceText.any(
    "envoy.extensions.filters.http.fault.v3.HTTPFault",
    """
    delay { fixed_delay { seconds: 1 } percentage { numerator: 7 } }
    abort { grpc_status: 14 percentage { numerator: 7 denominator: MILLION } } max_active_faults { value: 3 }
    """
  )

  private static let routes = """
    name: 'r'
    virtual_hosts {
      domains: 'a.example.com' domains: '*.example.com' domains: '*'
      retry_policy { retry_on: 'unavailable' num_retries { value: 3 } retry_back_off { base_interval { seconds: 1 } } }
      typed_per_filter_config { key: 'fault' value { \(Self.fault) } }
      routes {
        match {
          prefix: '/a.B/' case_sensitive { value: true }
          headers { name: 'a' exact_match: 'x' } headers { name: 'b' range_match { start: 1 end: 5 } }
          headers { name: 'c' string_match { safe_regex { regex: '[a-z]+(x|y)*' } } invert_match: true }
          runtime_fraction { default_value { numerator: 5 denominator: TEN_THOUSAND } }
        }
        route {
          weighted_clusters {
            clusters { name: 'c' weight { value: 3 } } clusters { name: 'd' weight { value: 4294967292 } }
          }
          hash_policy { header { header_name: 'h' regex_rewrite { pattern { regex: 'x+' } substitution: 'y' } } }
          hash_policy { filter_state { key: 'io.grpc.channel_id' } terminal: true }
          max_stream_duration { max_stream_duration { seconds: 3 nanos: 7 } }
        }
      }
      routes { match { safe_regex { regex: '/a.*' } } route { cluster: 'c' } }
      routes { match { path: '/a.B/c' } non_forwarding_action {} }
    }
    """

  private static let listener: String = {
    let manager = ResourceText.any(
      "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      """
      route_config { \(Self.routes) } common_http_protocol_options { max_stream_duration { seconds: 1 } }
      http_filters { name: 'fault' typed_config { \(Self.fault) } }
      http_filters { name: 'x' typed_config { type_url: 'a/b.C' } is_optional: true }
      http_filters {
        name: 'router' typed_config { \(ResourceText.any("envoy.extensions.filters.http.router.v3.Router")) }
      }
      """
    )
    return "name: 'l' api_listener { api_listener { \(manager) } }"
  }()

  private static func policies(_ config: String) -> String {
    "policies { typed_extension_config { typed_config { \(config) } } }"
  }

  private static let cluster: String = {
    let prefix = "envoy.extensions.load_balancing_policies"
    let custom = ResourceText.typedStruct(
      "least_request_experimental",
      "fields { key: 'choiceCount' value { number_value: 3 } } fields { key: 'a' value { list_value {} } }"
    )
    let locality = ResourceText.any(
      "\(prefix).wrr_locality.v3.WrrLocality",
      "endpoint_picking_policy { \(Self.policies("type_url: 'a/b.C'")) \(Self.policies(custom)) }"
    )
    let tls = ResourceText.any(
      "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
      """
      common_tls_context {
        tls_certificate_provider_instance { instance_name: 'own' }
        validation_context {
          ca_certificate_provider_instance { instance_name: 'roots' }
          match_subject_alt_names { exact: 'a' } match_subject_alt_names { safe_regex { regex: 'a|b' } }
        }
      }
      """
    )
    return """
      name: 'c' type: EDS eds_cluster_config { eds_config { ads {} } service_name: 's' }
      load_balancing_policy { \(Self.policies(locality)) }
      circuit_breakers { thresholds { max_requests { value: 7 } } } lrs_server { self {} }
      outlier_detection {
        interval { seconds: 1 } max_ejection_percent { value: 4 } enforcing_success_rate { value: 5 }
        success_rate_stdev_factor { value: 1500 } enforcing_failure_percentage { value: 6 }
      }
      transport_socket { typed_config { \(tls) } }
      """
  }()

  private static let aggregate: String = {
    let type = "envoy.extensions.clusters.aggregate.v3.ClusterConfig"
    let prefix = "envoy.extensions.load_balancing_policies"
    let ring = ResourceText.any("\(prefix).ring_hash.v3.RingHash", "maximum_ring_size { value: 2048 }")
    return """
      name: 'g' cluster_type { typed_config { \(ResourceText.any(type, "clusters: 'a' clusters: 'b'")) } }
      load_balancing_policy { \(Self.policies(ring)) }
      """
  }()

  private static let dns = """
    name: 'd' type: LOGICAL_DNS lb_policy: RING_HASH ring_hash_lb_config { minimum_ring_size { value: 7 } }
    load_assignment {
      endpoints {
        lb_endpoints { endpoint { address { socket_address { address: 'example.com' port_value: 443 } } } }
      }
    }
    """

  private static let endpoints = """
    cluster_name: 's'
    endpoints {
      locality { region: 'r' zone: 'z' sub_zone: 's' } load_balancing_weight { value: 3 }
      lb_endpoints {
        endpoint {
          address { socket_address { address: '10.0.0.1' port_value: 443 } }
          additional_addresses { address { socket_address { address: 'fe80::1' port_value: 443 } } }
        }
        health_status: HEALTHY load_balancing_weight { value: 7 }
      }
      lb_endpoints { endpoint { address { socket_address { address: '10.0.0.2' port_value: 443 } } } }
    }
    endpoints { locality { zone: 'y' } load_balancing_weight { value: 3 } priority: 1 }
    policy { drop_overloads { category: 'a' drop_percentage { numerator: 5 } } }
    """
}
