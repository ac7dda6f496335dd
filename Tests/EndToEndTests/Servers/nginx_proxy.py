"""nginx in front of a gRPC server, which it passes calls on to over HTTP/2 without TLS.

Takes the server's address as an argument, such as `127.0.0.1:5001`. If the argument is `canned`, nginx answers calls itself,
with an empty message: unary ones of gRPC, and those of Connect. A second argument is the number of requests after which
nginx renews a connection (`keepalive_requests`); without it, nginx's default of 1,000 holds. Announces the port `http` (h2c).
"""

import asyncio
import os
import subprocess
import sys

import launcher

NGINX = "/usr/sbin/nginx"


def locations(folder: str, backend: str) -> str:
    if backend != "canned":
        return f"location / {{ grpc_pass grpc://{backend}; }}"
    with open(os.path.join(folder, "message"), "wb") as file:
        file.write(bytes(5))
    return f"""
    types {{}}
    location / {{
      # Files are for GET alone, which error pages are got by.
      error_page 418 =200 /message;
      if ($content_type ~ application/grpc) {{ return 418; }}
      default_type application/proto;
      return 200 "";
    }}
    location = /message {{
      default_type application/grpc;
      root {folder};
      add_trailer grpc-status 0 always;
    }}
"""


def configuration(folder: str, port: int, backend: str, requests: str | None) -> str:
    # Where nginx keeps large bodies: its own folders are for root alone.
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"  {kind}_temp_path {folder}/{kind};" for kind in kinds)
    # Only root may say so, and has to: else the worker may not use the folder.
    user = "user root;" if os.geteuid() == 0 else ""
    renewal = f"keepalive_requests {requests};" if requests else ""
    return f"""
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  {renewal}
{paths}
  server {{
    listen 127.0.0.1:{port} http2;
    {locations(folder, backend)}
  }}
}}
"""


async def main() -> None:
    if not os.path.exists(NGINX):
        sys.exit("nginx is not installed: see .ci/setup")
    folder = launcher.temporary_folder()
    launcher.exit_with_parent()
    # nginx takes over a socket that listens already: nobody else can get the port in between.
    listener = launcher.listen()
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as file:
        requests = sys.argv[2] if len(sys.argv) > 2 else None
        file.write(configuration(folder, launcher.port_of(listener), sys.argv[1], requests))
    process = subprocess.Popen(
        # At this signal it ends its worker, too.
        ["setpriv", "--pdeathsig", "TERM", "--", NGINX, "-p", folder, "-e", f"{folder}/error.log", "-c", path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"NGINX": f"{listener.fileno()};"},
        pass_fds=[listener.fileno()],
    )
    launcher.announce(http=launcher.port_of(listener))
    status = await asyncio.to_thread(process.wait)
    sys.exit(f"nginx has ended with status {status}")


if __name__ == "__main__":
    asyncio.run(main())
