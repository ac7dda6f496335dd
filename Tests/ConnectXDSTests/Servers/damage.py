"""Resources that are wrong in one way each. A damage changes a resource in place; its name says what is wrong."""

import copy

from resources import ENVOY, ROUTER


def manager(listener: dict) -> dict:
    return listener["api_listener"]["api_listener"]


def first_route(configuration: dict) -> dict:
    return configuration["virtual_hosts"][0]["routes"][0]


def typed(name: str, kind: str, **fields) -> dict:
    return {"name": name, "typed_config": {"@type": ENVOY + kind} | fields}


def unknown_filter(listener: dict, is_optional: bool) -> None:
    filter = {
        "name": "odd",
        "typed_config": {
            "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
            "type_url": "type.googleapis.com/test.Odd",
        },
    }
    if is_optional:
        filter["is_optional"] = True
    manager(listener)["http_filters"].insert(0, filter)


LISTENER = {
    "no api listener": lambda r: r.pop("api_listener"),
    "no filters": lambda r: manager(r).update(http_filters=[]),
    "router not last": lambda r: manager(r)["http_filters"].append(
        typed("late", "extensions.filters.http.fault.v3.HTTPFault")
    ),
    "filter's name twice": lambda r: manager(r)["http_filters"].insert(0, copy.deepcopy(ROUTER)),
    "filter without a name": lambda r: manager(r)["http_filters"].insert(
        0, typed("", "extensions.filters.http.fault.v3.HTTPFault")
    ),
    "filter without settings": lambda r: manager(r)["http_filters"].insert(0, {"name": "empty"}),
    "unknown filter": lambda r: unknown_filter(r, False),
    "unknown optional filter": lambda r: unknown_filter(r, True),
    "no routes": lambda r: (manager(r).pop("rds", None), manager(r).pop("route_config", None)),
    "routes from elsewhere": lambda r: (
        manager(r).pop("route_config", None),
        manager(r).update(
            rds={"config_source": {"path_config_source": {"path": "x"}}, "route_config_name": "x"}
        ),
    ),
    "trusted hops": lambda r: manager(r).update(xff_num_trusted_hops=1),
    "other api listener": lambda r: r.update(
        api_listener={"api_listener": {"@type": ENVOY + "config.route.v3.RouteConfiguration"}}
    ),
    "bad fault": lambda r: manager(r)["http_filters"].insert(
        0,
        typed(
            "bad", "extensions.filters.http.fault.v3.HTTPFault", abort={"grpc_status": 99, "percentage": {"numerator": 0}}
        ),
    ),
}

ROUTE = {
    "bad regex": lambda r: first_route(r).update(match={"safe_regex": {"regex": "a(b"}}),
    "no match": lambda r: first_route(r).pop("match"),
    "no path": lambda r: first_route(r).update(match={"headers": [{"name": "a", "present_match": True}]}),
    "path with too few slashes": lambda r: first_route(r).update(match={"path": "/one"}),
    "path without a slash": lambda r: first_route(r).update(match={"path": "a/b"}),
    "prefix with many slashes": lambda r: first_route(r).update(match={"prefix": "/a/b/c"}),
    "prefix without a slash": lambda r: first_route(r).update(match={"prefix": "ab"}),
    "empty path": lambda r: first_route(r).update(match={"path": ""}),
    "query parameters": lambda r: first_route(r).update(
        match={"prefix": "", "query_parameters": [{"name": "q", "present_match": True}]}
    ),
    "header without a matcher": lambda r: first_route(r).update(
        match={"prefix": "", "headers": [{"name": "a"}]}
    ),
    "bad regex of a header": lambda r: first_route(r).update(
        match={"prefix": "", "headers": [{"name": "a", "safe_regex_match": {"regex": "["}}]}
    ),
    "empty range": lambda r: first_route(r).update(
        match={"prefix": "", "headers": [{"name": "a", "range_match": {"start": 9, "end": 2}}]}
    ),
    "no domains": lambda r: r["virtual_hosts"][0].update(domains=[]),
    "bad domain": lambda r: r["virtual_hosts"][0]["domains"].append("a*b"),
    "domain twice": lambda r: r["virtual_hosts"][0]["domains"].append(
        r["virtual_hosts"][0]["domains"][0]
    ),
    "empty domain": lambda r: r["virtual_hosts"][0]["domains"].append(""),
    "weights of zero": lambda r: first_route(r).update(
        route={"weighted_clusters": {"clusters": [{"name": "a", "weight": 0}]}}
    ),
    "no weighted clusters": lambda r: first_route(r).update(route={"weighted_clusters": {}}),
    "weights too large": lambda r: first_route(r).update(
        route={
            "weighted_clusters": {
                "clusters": [{"name": "a", "weight": 4294967295}, {"name": "b", "weight": 1}]
            }
        }
    ),
    "cluster without a name": lambda r: first_route(r).update(route={"cluster": ""}),
    "no action": lambda r: first_route(r).pop("route"),
    "cluster by header": lambda r: first_route(r).update(route={"cluster_header": "x-c"}),
    "redirect": lambda r: (first_route(r).pop("route"), first_route(r).update(redirect={})),
    "no cluster": lambda r: first_route(r).update(route={}),
    "bad interval of retries": lambda r: first_route(r)["route"].update(
        retry_policy={"retry_on": "unavailable", "retry_back_off": {"max_interval": "1s"}}
    ),
    "no retries": lambda r: first_route(r)["route"].update(
        retry_policy={"retry_on": "unavailable", "num_retries": 0}
    ),
    "negative duration": lambda r: first_route(r)["route"].update(
        max_stream_duration={"max_stream_duration": "-1s"}
    ),
    "unknown plugin": lambda r: r.update(
        cluster_specifier_plugins=[
            {"extension": {"name": "p", "typed_config": {"@type": ENVOY + "config.route.v3.RouteConfiguration"}}}
        ]
    ),
    "override without a filter": lambda r: first_route(r).update(
        typed_per_filter_config={"odd": {"@type": ENVOY + "config.route.v3.RouteConfiguration"}}
    ),
    "bad override": lambda r: first_route(r).update(
        typed_per_filter_config={
            "fault": {
                "@type": ENVOY + "extensions.filters.http.fault.v3.HTTPFault",
                "abort": {"grpc_status": 99},
            }
        }
    ),
    "fraction without a value": lambda r: first_route(r)["match"].update(runtime_fraction={}),
}

OUTLIER = ("base_ejection_time", "interval", "max_ejection_time")


def replace_policies(cluster: dict, *policies: dict) -> None:
    cluster["load_balancing_policy"] = {"policies": list(policies)}


def balanced(kind: str, **fields) -> dict:
    return {
        "typed_extension_config": typed("p", f"extensions.load_balancing_policies.{kind}", **fields)
    }


CLUSTER = {
    "endpoints from elsewhere": lambda r: r.update(
        type="EDS", eds_cluster_config={"eds_config": {"path_config_source": {"path": "x"}}}
    ),
    "no settings of endpoints": lambda r: (r.update(type="EDS"), r.pop("eds_cluster_config", None)),
    "static": lambda r: r.update(type="STATIC"),
    "strict dns": lambda r: r.update(type="STRICT_DNS"),
    "maglev": lambda r: (r.pop("load_balancing_policy", None), r.update(lb_policy="MAGLEV")),
    "random": lambda r: (r.pop("load_balancing_policy", None), r.update(lb_policy="RANDOM")),
    "provided policy": lambda r: (
        r.pop("load_balancing_policy", None),
        r.update(lb_policy="CLUSTER_PROVIDED"),
    ),
    "unknown policies alone": lambda r: replace_policies(
        r, {"typed_extension_config": typed("x", "config.route.v3.RouteConfiguration")}
    ),
    "policy without settings": lambda r: replace_policies(r, {"typed_extension_config": {"name": "x"}}),
    "no policies": lambda r: replace_policies(r),
    "ring too large": lambda r: replace_policies(
        r, balanced("ring_hash.v3.RingHash", hash_function="XX_HASH", minimum_ring_size=8388609)
    ),
    "ring of zero": lambda r: replace_policies(
        r, balanced("ring_hash.v3.RingHash", hash_function="XX_HASH", minimum_ring_size=0)
    ),
    "ring smaller than its minimum": lambda r: replace_policies(
        r,
        balanced(
            "ring_hash.v3.RingHash", hash_function="XX_HASH", minimum_ring_size=20, maximum_ring_size=10
        ),
    ),
    "ring by another hash": lambda r: replace_policies(
        r, balanced("ring_hash.v3.RingHash", hash_function="MURMUR_HASH_2")
    ),
    "no policy within localities": lambda r: replace_policies(
        r, balanced("wrr_locality.v3.WrrLocality")
    ),
    "percentage over 100": lambda r: r.update(outlier_detection={"max_ejection_percent": 101}),
    "enforcement over 100": lambda r: r.update(outlier_detection={"enforcing_success_rate": 101}),
    "negative interval": lambda r: r.update(outlier_detection={"interval": "-1s"}),
    "unknown transport": lambda r: r.update(
        transport_socket=typed("odd", "config.route.v3.RouteConfiguration")
    ),
    "tls without roots": lambda r: r.update(
        transport_socket=typed(
            "envoy.transport_sockets.tls", "extensions.transport_sockets.tls.v3.UpstreamTlsContext"
        )
    ),
    "tls with an unknown provider": lambda r: r.update(
        transport_socket=typed(
            "envoy.transport_sockets.tls",
            "extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            common_tls_context={
                "validation_context": {"ca_certificate_provider_instance": {"instance_name": "none"}}
            },
        )
    ),
    "loads to another server": lambda r: r.update(lrs_server={"path_config_source": {"path": "x"}}),
    "loads to the same server": lambda r: r.update(lrs_server={"self": {}}),
    "empty aggregate": lambda r: (
        r.pop("type", None),
        r.update(
            cluster_type=typed(
                "envoy.clusters.aggregate", "extensions.clusters.aggregate.v3.ClusterConfig", clusters=[]
            )
        ),
    ),
    "unknown type": lambda r: (
        r.pop("type", None),
        r.update(cluster_type=typed("odd", "config.route.v3.RouteConfiguration")),
    ),
    "logical dns without a host": lambda r: r.update(type="LOGICAL_DNS", load_assignment={}),
    "logical dns with two hosts": lambda r: r.update(
        type="LOGICAL_DNS",
        load_assignment={
            "endpoints": [
                {
                    "lb_endpoints": [
                        {"endpoint": {"address": {"socket_address": {"address": "localhost", "port_value": 1}}}},
                        {"endpoint": {"address": {"socket_address": {"address": "localhost", "port_value": 2}}}},
                    ]
                }
            ]
        },
    ),
}


def localities(assignment: dict) -> list[dict]:
    return assignment["endpoints"]


def first_endpoint(assignment: dict) -> dict:
    return localities(assignment)[0]["lb_endpoints"][0]


ENDPOINTS = {
    "gap in priorities": lambda r: [l.update(priority=l.get("priority", 0) + 1) for l in localities(r)],
    "locality twice": lambda r: localities(r).append(copy.deepcopy(localities(r)[0])),
    "no locality": lambda r: localities(r)[0].pop("locality"),
    "no address": lambda r: first_endpoint(r)["endpoint"].pop("address"),
    "port too large": lambda r: first_endpoint(r)["endpoint"]["address"]["socket_address"].update(
        port_value=65536
    ),
    "name as address": lambda r: first_endpoint(r)["endpoint"]["address"]["socket_address"].update(
        address="localhost"
    ),
    "pipe": lambda r: first_endpoint(r)["endpoint"].update(address={"pipe": {"path": "/x"}}),
    "weight of zero": lambda r: first_endpoint(r).update(load_balancing_weight=0),
    "locality without weight": lambda r: localities(r)[0].pop("load_balancing_weight", None),
    "weights too large": lambda r: [
        l.update(load_balancing_weight=4294967295) for l in localities(r)
    ],
    "endpoint twice": lambda r: localities(r)[0]["lb_endpoints"].append(
        copy.deepcopy(first_endpoint(r))
    ),
    "drop without a category": lambda r: r.update(
        policy={"drop_overloads": [{"drop_percentage": {"numerator": 0}}]}
    ),
    "drop of more than all": lambda r: r.update(
        policy={"drop_overloads": [{"category": "x", "drop_percentage": {"numerator": 101}}]}
    ),
    "no localities": lambda r: r.update(endpoints=[]),
}

ALL = {"listener": LISTENER, "route": ROUTE, "cluster": CLUSTER, "endpoints": ENDPOINTS}
