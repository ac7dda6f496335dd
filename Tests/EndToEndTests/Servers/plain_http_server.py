"""A web server that knows nothing of RPC and HTTP/2: Python's own, with an empty folder. Announces the port `http`."""

import functools
import http.server

import launcher


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


launcher.exit_with_parent()
server = http.server.ThreadingHTTPServer(
    ("127.0.0.1", 0), functools.partial(Handler, directory=launcher.temporary_folder())
)
launcher.announce(http=server.server_port)
server.serve_forever()
