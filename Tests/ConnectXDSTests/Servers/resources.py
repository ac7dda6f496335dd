"""Resources as protobuf's JSON, in short words."""

ENVOY = "type.googleapis.com/envoy."
ADS = {"ads": {}, "resource_api_version": "V3"}
ROUTER = {
    "name": "router",
    "typed_config": {"@type": ENVOY + "extensions.filters.http.router.v3.Router"},
}


def fault_filter(name: str = "fault", **settings) -> dict:
    return {
        "name": name,
        "typed_config": {"@type": ENVOY + "extensions.filters.http.fault.v3.HTTPFault"} | settings,
    }


def listener(name: str, routes: str | dict, filters: list | None = None, **more) -> dict:
    """A listener with the name of a route configuration, or with the configuration itself."""
    manager = {
        "@type": ENVOY
        + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "http_filters": [ROUTER] if filters is None else filters,
    } | more
    if isinstance(routes, str):
        manager["rds"] = {"config_source": ADS, "route_config_name": routes}
    else:
        manager["route_config"] = routes
    return {"name": name, "api_listener": {"api_listener": manager}}


def route_configuration(name: str, virtual_hosts: list[dict]) -> dict:
    return {"name": name, "virtual_hosts": virtual_hosts}


def virtual_host(name: str, domains: list[str], routes: list[dict], **more) -> dict:
    return {"name": name, "domains": domains, "routes": routes} | more


def route(match: dict, cluster: str | dict | None = None, action: dict | None = None, **more) -> dict:
    """A route to a cluster, or to weighted clusters (name -> weight)."""
    forward = dict(action or {})
    if isinstance(cluster, str):
        forward["cluster"] = cluster
    elif cluster is not None:
        forward["weighted_clusters"] = {
            "clusters": [{"name": name, "weight": weight} for name, weight in cluster.items()]
        }
    return {"match": match, "route": forward} | more


def policy(name: str, config: dict | None = None, *, wrr_locality: bool = False) -> dict:
    """One entry of `load_balancing_policy.policies`."""
    kind = "".join(word.capitalize() for word in name.split("_"))
    typed = {"@type": f"{ENVOY}extensions.load_balancing_policies.{name}.v3.{kind}"} | (config or {})
    entry = {"typed_extension_config": {"name": name, "typed_config": typed}}
    if not wrr_locality:
        return entry
    outer = {
        "@type": ENVOY + "extensions.load_balancing_policies.wrr_locality.v3.WrrLocality",
        "endpoint_picking_policy": {"policies": [entry]},
    }
    return {"typed_extension_config": {"name": "wrr_locality", "typed_config": outer}}


def unknown_policy(name: str = "unknown") -> dict:
    typed = {"@type": "type.googleapis.com/xds.type.v3.TypedStruct", "type_url": f"type.googleapis.com/test.{name}"}
    return {"typed_extension_config": {"name": name, "typed_config": typed}}


def cluster(name: str, service: str | None = None, **more) -> dict:
    """A cluster whose endpoints have a resource."""
    eds: dict = {"eds_config": ADS}
    if service:
        eds["service_name"] = service
    return {"name": name, "type": "EDS", "eds_cluster_config": eds} | more


def aggregate(name: str, clusters: list[str], **more) -> dict:
    typed = {"@type": ENVOY + "extensions.clusters.aggregate.v3.ClusterConfig", "clusters": clusters}
    return {
        "name": name,
        "cluster_type": {"name": "envoy.clusters.aggregate", "typed_config": typed},
    } | more


def socket_address(host: str, port: int) -> dict:
    return {"address": {"socket_address": {"address": host, "port_value": port}}}


def logical_dns(name: str, host: str, port: int, **more) -> dict:
    return {
        "name": name,
        "type": "LOGICAL_DNS",
        "load_assignment": {
            "endpoints": [{"lb_endpoints": [{"endpoint": socket_address(host, port)}]}]
        },
    } | more


def endpoint(address: str, health: str = "UNKNOWN", weight: int | None = None) -> dict:
    host, port = address.rsplit(":", 1)
    result: dict = {"endpoint": socket_address(host, int(port)), "health_status": health}
    if weight is not None:
        result["load_balancing_weight"] = weight
    return result


def locality(zone: str, endpoints: list[dict], weight: int | None = 1, priority: int = 0) -> dict:
    result: dict = {"locality": {"region": "r", "zone": zone, "sub_zone": ""}, "lb_endpoints": endpoints}
    if weight is not None:
        result["load_balancing_weight"] = weight
    if priority:
        result["priority"] = priority
    return result


def endpoints(name: str, localities: list[dict], drops: list[tuple] = ()) -> dict:
    """Endpoints of a cluster. Drops are pairs of a category and percent."""
    result: dict = {"cluster_name": name, "endpoints": localities}
    if drops:
        result["policy"] = {
            "drop_overloads": [
                {"category": category, "drop_percentage": {"numerator": percent}}
                for category, percent in drops
            ]
        }
    return result
