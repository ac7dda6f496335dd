"""What the servers share: where they listen, how they say so, and when they end."""

import json
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Callable


def listen(port: int = 0) -> socket.socket:
    """A socket that already accepts connections on a port of 127.0.0.1, by default a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(256)
    return listener


def port_of(listener: socket.socket) -> int:
    return listener.getsockname()[1]


def temporary_folder() -> str:
    """A folder that is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="connect-server-")
    _folders.append(folder)
    return folder


def announce(**facts: object) -> None:
    """Tells the test process, in one line of JSON, that the server is ready."""
    print(json.dumps(facts), flush=True)


def exit_with_parent() -> None:
    """Ends this process as soon as its standard input is closed, which the parent's end does too."""
    take_commands(lambda command, reply: None)


def take_commands(handle: Callable[[dict, Callable[..., None]], None]) -> None:
    """Calls `handle(command, reply)` for each line of standard input, a JSON object. `reply(**facts)` answers it, with
    its number, on standard output. Ends this process as soon as standard input is closed.
    """

    def answer(number: int, facts: dict) -> None:
        with _output:
            print(json.dumps({"number": number} | facts), flush=True)

    def wait() -> None:
        for line in sys.stdin.buffer:
            command = json.loads(line)
            handle(command, lambda number=command["number"], **facts: answer(number, facts))
        for folder in _folders:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


_output = threading.Lock()
_folders: list[str] = []
