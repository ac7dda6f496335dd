"""A web server that knows nothing of RPC and HTTP/2: Python's own, with a folder that has one file, `sales/july.csv`. Announces
the port `http`.
"""

import functools
import http.server
import os

import launcher


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


launcher.exit_with_parent()
folder = launcher.temporary_folder()
os.mkdir(os.path.join(folder, "sales"))
with open(os.path.join(folder, "sales", "july.csv"), "w", encoding="utf-8") as file:
    file.write("city,units\nOslo,12\nLima,30\n")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
launcher.announce(http=server.server_port)
server.serve_forever()
