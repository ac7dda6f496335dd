"""Seeded configurations of a mesh, with calls.

    generate.py SEED

A scenario has `target`, `listener` (its name), and `steps`; a step has `resources` by type (see control_plane.py) and `calls`. A call
has `path`, `metadata`, `count` (how often it is made at least), and `codes` if only the codes are to be compared. Everything that is left to chance is 0 or 100 %, or spread evenly
over few servers: which servers a call can reach follows from the scenario.
"""

import copy
import json
import random
import sys

from google.protobuf import json_format

import control_plane
import damage
import resources as make

DEAD = "127.0.9.1:1"
PATHS = ["/pkg.A/One", "/pkg.A/Two", "/pkg.B/One"]
METADATA = [[], [["env", "prod"]], [["env", "test"], ["n", "7"]]]
PERCENT = {"denominator": "HUNDRED"}


class Scenario:
    # With other sizes, this client has more entries on a ring than gRPC, and keys lead to other servers.
    ring = {"hash_function": "XX_HASH", "minimum_ring_size": 1024, "maximum_ring_size": 1024}

    def __init__(self, seed: int, servers: dict[str, str]):
        self.random = random.Random(seed)
        self.seed = seed
        self.servers = servers
        self.name = f"svc-{seed}"
        self.clusters: dict[str, dict] = {}
        self.endpoints: dict[str, dict] = {}
        self.features: list[str] = []
        self.hashes = False

    def maybe(self, chance: float) -> bool:
        return self.random.random() < chance

    def feature(self, name: str, chance: float) -> bool:
        if not self.maybe(chance):
            return False
        self.features.append(name)
        return True

    # Endpoints

    def some_servers(self, count: int) -> list[str]:
        return [self.servers[name] for name in self.random.sample(sorted(self.servers), count)]

    def locality(self, zone: str, priority: int, is_dead: bool) -> dict:
        if is_dead:
            endpoints = [make.endpoint(DEAD)]
        else:
            endpoints = [make.endpoint(address) for address in self.some_servers(self.random.randint(1, 2))]
        if self.feature("unhealthy endpoint", 0.2):
            health = self.random.choice(["UNHEALTHY", "DRAINING", "TIMEOUT", "DEGRADED"])
            taken = {json.dumps(e["endpoint"], sort_keys=True) for e in endpoints}
            for address in self.some_servers(3):
                extra = make.endpoint(address, health)
                if json.dumps(extra["endpoint"], sort_keys=True) not in taken:
                    endpoints.append(extra)
                    break
        return make.locality(zone, endpoints, 1, priority)

    def assignment(self, name: str) -> dict:
        localities: list[dict] = []
        addresses: set[str] = set()
        priorities = self.random.choice([1, 1, 1, 2, 3])
        for priority in range(priorities):
            is_dead = priority < priorities - 1 and self.maybe(0.6)
            for zone in range(self.random.choice([1, 1, 2])):
                locality = self.locality(f"z{zone}", priority, is_dead)
                kept = []
                for endpoint in locality["lb_endpoints"]:
                    text = json.dumps(endpoint["endpoint"], sort_keys=True)
                    # gRPC refuses a resource that has an address twice.
                    if text not in addresses:
                        addresses.add(text)
                        kept.append(endpoint)
                locality["lb_endpoints"] = kept
                localities.append(locality)
        drops = []
        if self.feature("drops", 0.15):
            drops.append(("c", self.random.choice([0, 100])))
        if self.feature("locality of weight 0", 0.1):
            localities.append(make.locality("z9", [make.endpoint(DEAD)], 0))
        if self.feature("no endpoints", 0.04):
            localities = []
        return make.endpoints(name, localities, drops)

    # Clusters

    def policies(self) -> dict:
        """Fields of a cluster that choose its policy."""
        kind = self.random.choice(
            ["none", "enum", "round_robin", "wrr", "pick_first", "ring_hash", "unknown first"]
        )
        if kind == "none":
            return {}
        self.features.append(f"policy {kind}")
        if kind == "enum":
            return {"lb_policy": "ROUND_ROBIN"}
        if kind == "ring_hash":
            self.hashes = True
            return {
                "load_balancing_policy": {
                    "policies": [make.policy("ring_hash", self.ring)]
                }
            }
        entry = {
            "round_robin": make.policy("round_robin"),
            "wrr": make.policy("round_robin", wrr_locality=True),
            "pick_first": make.policy("pick_first"),
            "unknown first": make.policy("round_robin"),
        }[kind]
        policies = [entry]
        if kind == "unknown first":
            policies.insert(0, make.unknown_policy())
        return {"load_balancing_policy": {"policies": policies}}

    def eds(self, name: str) -> str:
        more = self.policies()
        if self.feature("circuit breaker of 0", 0.05):
            more["circuit_breakers"] = {"thresholds": [{"max_requests": 0}]}
        if self.feature("outlier detection", 0.1):
            more["outlier_detection"] = {"consecutive_5xx": 5, "failure_percentage_threshold": 90}
        service = f"{name}-service" if self.feature("service name", 0.3) else None
        self.clusters[name] = make.cluster(name, service, **more)
        if not self.feature("endpoints missing", 0.0):
            self.endpoints[service or name] = self.assignment(service or name)
        return name

    def cluster(self, name: str, depth: int = 0) -> str:
        name = f"{name}-{self.seed}"
        if depth < 2 and self.feature("aggregate", 0.15):
            parts = [self.cluster(f"{name}-{index}", depth + 1) for index in range(self.random.randint(1, 3))]
            self.clusters[name] = make.aggregate(name, parts, **self.policies())
            return name
        if self.feature("logical dns", 0.1):
            server = self.random.choice([name for name in self.servers if name.startswith("local")])
            port = int(self.servers[server].rsplit(":", 1)[1])
            self.clusters[name] = make.logical_dns(name, "localhost", port)
            return name
        return self.eds(name)

    # Routes

    def path_match(self) -> dict:
        match = self.random.choice(
            [
                {"prefix": ""},
                {"prefix": "/"},
                {"prefix": "/pkg.A/"},
                {"prefix": "/pkg.A/T"},
                {"prefix": "/PKG.a/", "case_sensitive": False},
                {"path": "/pkg.A/One"},
                {"path": "/PKG.B/one", "case_sensitive": False},
                {"path": "/PKG.B/one"},
                {"safe_regex": {"regex": "/pkg[.](A|C)/.*"}},
                {"safe_regex": {"regex": "/pkg"}},
                {"safe_regex": {"regex": ".*/One"}},
                {"safe_regex": {"regex": "(?i)/PKG.+"}},
            ]
        )
        return copy.deepcopy(match)

    def header_match(self) -> dict:
        matcher = self.random.choice(
            [
                {"name": "env", "exact_match": "prod"},
                {"name": "env", "prefix_match": "pr"},
                {"name": "env", "suffix_match": "st"},
                {"name": "env", "contains_match": "ro"},
                {"name": "env", "present_match": True},
                {"name": "env", "present_match": False},
                {"name": "env", "safe_regex_match": {"regex": "p.*"}},
                {"name": "env", "safe_regex_match": {"regex": "p"}},
                {"name": "env", "string_match": {"exact": "PROD", "ignore_case": True}},
                {"name": "env", "string_match": {"prefix": "T", "ignore_case": True}},
                {"name": "env", "string_match": {"suffix": "D"}},
                {"name": "env", "string_match": {"contains": "ES", "ignore_case": True}},
                {"name": "env", "string_match": {"safe_regex": {"regex": "(prod|test)"}}},
                {"name": "n", "range_match": {"start": 5, "end": 8}},
                {"name": "n", "range_match": {"start": 5, "end": 7}},
                {"name": "content-type", "exact_match": "application/grpc"},
                {"name": "missing", "exact_match": ""},
                {"name": "x-none-bin", "present_match": False},
                {"name": "x-none-bin", "present_match": True},
            ]
        )
        matcher = copy.deepcopy(matcher)
        if self.maybe(0.25):
            matcher["invert_match"] = True
        return matcher

    def match(self) -> dict:
        match = self.path_match()
        if self.feature("headers", 0.5):
            match["headers"] = [self.header_match() for _ in range(self.random.randint(1, 2))]
        if self.feature("fraction", 0.2):
            value = {"numerator": self.random.choice([0, 100])} | PERCENT
            match["runtime_fraction"] = {"default_value": value}
        return match

    def forward(self) -> dict:
        """Fields of a route's action."""
        action: dict = {}
        if self.feature("retry", 0.2):
            action["retry_policy"] = {
                "retry_on": self.random.choice(["unavailable", "unavailable,cancelled", "internal", "5xx", ""]),
                "num_retries": self.random.randint(1, 6),
                "retry_back_off": {"base_interval": "0.01s", "max_interval": "0.02s"},
            }
        if self.feature("duration", 0.1):
            action["max_stream_duration"] = {"max_stream_duration": self.random.choice(["0s", "20s", "30s"])}
        if self.hashes:
            action["hash_policy"] = [{"header": {"header_name": "env"}}]
        return action

    def fault(self) -> dict:
        settings: dict = {}
        if self.maybe(0.8):
            abort = self.random.choice(
                [{"grpc_status": 7}, {"grpc_status": 0}, {"http_status": 404}, {"http_status": 503}, {"header_abort": {}}]
            )
            settings["abort"] = abort | {
                "percentage": {"numerator": self.random.choice([0, 100])} | PERCENT
            }
        if self.maybe(0.2):
            settings["delay"] = {"fixed_delay": "0.01s", "percentage": {"numerator": 100} | PERCENT}
        if self.feature("fault by header", 0.3):
            settings["headers"] = [self.header_match()]
        return settings

    def override(self) -> dict:
        typed = {"@type": make.ENVOY + "extensions.filters.http.fault.v3.HTTPFault"} | self.fault()
        return {"typed_per_filter_config": {"fault": typed}}

    def routes(self) -> list[dict]:
        names = [self.cluster(f"c{index}") for index in range(self.random.randint(1, 3))]
        result = []
        for _ in range(self.random.randint(0, 3)):
            target: str | dict = self.random.choice(names)
            if len(names) > 1 and self.feature("weighted", 0.3):
                first, second = self.random.sample(names, 2)
                target = {first: 1, second: self.random.choice([0, 1])}
            result.append(make.route(self.match(), target, self.forward()))
            if self.has_fault and self.feature("override of a route", 0.3):
                result[-1] |= self.override()
        if not self.feature("no last route", 0.1):
            result.append(make.route({"prefix": ""}, self.random.choice(names), self.forward()))
        if self.feature("route of servers", 0.05):
            route = make.route(self.match())
            del route["route"]
            result.insert(0, route | {"non_forwarding_action": {}})
        return result

    def hosts(self) -> list[dict]:
        domains = self.random.choice(
            [[self.name], ["*"], [self.name, "other"], ["svc-*"], [f"*{self.seed}"], [self.name.upper()]]
        )
        hosts = [make.virtual_host("main", domains, self.routes())]
        if self.has_fault and self.feature("override of a host", 0.2):
            hosts[0] |= self.override()
        if self.feature("other host", 0.3):
            domain = self.random.choice(["other.example", "svc*", "s*", "*.example"])
            hosts.insert(
                self.random.choice([0, 1]),
                make.virtual_host("second", [domain], [make.route({"prefix": ""}, self.cluster("second"))]),
            )
        if self.feature("retry of a host", 0.1):
            # Calls of the oracle would take minutes with the default intervals.
            backoff = {"base_interval": "0.01s", "max_interval": "0.02s"}
            hosts[0]["retry_policy"] = {
                "retry_on": "unavailable",
                "num_retries": 3,
                "retry_back_off": backoff,
            }
        if self.feature("host of nobody", 0.03):
            hosts = [make.virtual_host("main", ["nobody.example"], self.routes())]
        return hosts

    def first(self) -> dict:
        self.has_fault = self.feature("fault", 0.25)
        filters = [make.ROUTER]
        if self.has_fault:
            filters.insert(0, make.fault_filter(**self.fault()))
        configuration = make.route_configuration(f"routes-{self.seed}", self.hosts())
        more = {}
        if self.feature("duration of the listener", 0.1):
            more["common_http_protocol_options"] = {
                "max_stream_duration": self.random.choice(["0s", "30s", "20s"])
            }
        is_inline = self.feature("inline", 0.3)
        listener = make.listener(self.name, configuration if is_inline else configuration["name"], filters, **more)
        return {
            "listener": [listener],
            "route": [] if is_inline else [configuration],
            "cluster": list(self.clusters.values()),
            "endpoints": list(self.endpoints.values()),
        }

    # Steps

    def damaged(self, resources: dict) -> dict:
        """The resources, one of which is wrong."""
        result = copy.deepcopy(resources)
        kinds = [kind for kind in ("listener", "route", "cluster", "endpoints") if result[kind]]
        kind = self.random.choice(kinds)
        resource = self.random.choice(result[kind])
        for _ in range(20):
            name = self.random.choice(sorted(damage.ALL[kind]))
            try:
                copied = copy.deepcopy(resource)
                damage.ALL[kind][name](copied)
                control_plane.packed(control_plane.TYPES[kind], copied)
            except (KeyError, IndexError, json_format.ParseError):
                continue  # This damage is for resources that have something else.
            result[kind][result[kind].index(resource)] = copied
            self.features.append(f"{kind}: {name}")
            break
        return result

    def changed(self, resources: dict) -> dict:
        """The resources with a change that is right."""
        result = copy.deepcopy(resources)
        kind = self.random.choice(["endpoints", "endpoints", "cluster gone", "listener gone", "endpoints gone"])
        self.features.append(f"change: {kind}")
        if kind == "endpoints" and result["endpoints"]:
            index = self.random.randrange(len(result["endpoints"]))
            name = result["endpoints"][index]["cluster_name"]
            result["endpoints"][index] = self.assignment(name)
        elif kind == "cluster gone" and result["cluster"]:
            result["cluster"].pop(self.random.randrange(len(result["cluster"])))
        elif kind == "listener gone":
            result["listener"] = []
        elif kind == "endpoints gone" and result["endpoints"]:
            result["endpoints"].pop()
        return result

    def calls(self) -> list[dict]:
        calls = [
            {"path": path, "metadata": metadata, "count": 16} for path in PATHS for metadata in METADATA
        ]
        extra = self.random.choice(
            [
                [["x-fail-attempts", "2"], ["x-code", "14"]],
                [["x-fail-attempts", "4"], ["x-code", "14"]],
                [["x-fail-attempts", "1"], ["x-code", "13"]],
                [["x-delay", "5"]],
                [["x-envoy-fault-abort-grpc-request", "9"]],
                [["x-code", "5"]],
            ]
        )
        call = {"path": PATHS[0], "metadata": extra, "count": 16}
        # With attempts that go round in turn, the last one may always reach the same server.
        if extra[0][0] == "x-fail-attempts":
            call["codes"] = True
        calls.append(call)
        return calls

    def build(self) -> dict:
        first = self.first()
        states = [first]
        if self.feature("wrong at first", 0.25):
            states = [self.damaged(first), first]
        for _ in range(self.random.randint(0, 2)):
            states.append(self.damaged(states[-1]) if self.maybe(0.5) else self.changed(states[-1]))
        return {
            "seed": self.seed,
            "target": f"xds:///{self.name}",
            "listener": self.name,
            "features": self.features,
            "steps": [{"resources": state, "calls": self.calls()} for state in states],
        }


def scenario(seed: int, servers: dict[str, str]) -> dict:
    return Scenario(seed, servers).build()


def examples() -> dict[str, str]:
    names = ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "c0", "c1", "c2"]
    places = {"a": 1, "b": 2, "c": 3}
    result = {name: f"127.0.{places[name[0]]}.{int(name[1]) + 1}:80" for name in names}
    return result | {"local": "127.0.0.1:80"}


if __name__ == "__main__":
    print(json.dumps(scenario(int(sys.argv[1]), examples()), indent=2))
