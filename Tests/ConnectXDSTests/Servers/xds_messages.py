"""All messages of Envoy and xDS that the tests use, so that JSON with `@type` can be read."""

from google.protobuf import descriptor_pool

from envoy.config.cluster.v3 import cluster_pb2 as cluster
from envoy.config.endpoint.v3 import endpoint_pb2 as endpoint
from envoy.config.listener.v3 import listener_pb2 as listener
from envoy.config.route.v3 import route_pb2 as route
from envoy.extensions.clusters.aggregate.v3 import cluster_pb2 as aggregate
from envoy.extensions.filters.http.fault.v3 import fault_pb2 as fault
from envoy.extensions.filters.http.router.v3 import router_pb2 as router
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as manager,
)
from envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3 import (
    client_side_weighted_round_robin_pb2 as weighted_round_robin,
)
from envoy.extensions.load_balancing_policies.least_request.v3 import least_request_pb2 as least_request
from envoy.extensions.load_balancing_policies.pick_first.v3 import pick_first_pb2 as pick_first
from envoy.extensions.load_balancing_policies.random.v3 import random_pb2 as random_policy
from envoy.extensions.load_balancing_policies.ring_hash.v3 import ring_hash_pb2 as ring_hash
from envoy.extensions.load_balancing_policies.round_robin.v3 import round_robin_pb2 as round_robin
from envoy.extensions.load_balancing_policies.wrr_locality.v3 import wrr_locality_pb2 as wrr_locality
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2 as tls
from envoy.service.discovery.v3 import discovery_pb2 as discovery
from envoy.service.load_stats.v3 import lrs_pb2 as loads
from envoy.service.status.v3 import csds_pb2 as status
from udpa.type.v1 import typed_struct_pb2 as udpa_typed_struct
from xds.type.v3 import typed_struct_pb2 as typed_struct

__all__ = [
    "aggregate", "cluster", "discovery", "endpoint", "fault", "least_request", "listener", "loads", "manager", "pick_first",
    "pool", "random_policy", "ring_hash", "round_robin", "route", "router", "status", "tls", "typed_struct",
    "udpa_typed_struct", "weighted_round_robin", "wrr_locality",
]  # fmt: skip

pool = descriptor_pool.Default()
