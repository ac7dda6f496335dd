"""A forward proxy of somebody else's, tinyproxy (HTTP CONNECT) or microsocks (SOCKS5), as a child process.

    forward_proxy.py tinyproxy|microsocks PORT USER PASSWORD LINES

PORT 0 is a free one; with an empty USER the proxy asks for no credentials; LINES are more lines of tinyproxy's
configuration. Announces the port `proxy` and the text `pid`, the number of the proxy's process, which ends with this one.
"""

import ctypes
import signal
import socket
import subprocess
import sys
import tempfile
import time

import launcher

PR_SET_PDEATHSIG = 1


def command(program: str, port: int, user: str, password: str, lines: str, folder: str) -> list[str]:
    if program == "microsocks":
        login = ["-u", user, "-P", password] if user else []
        return [f"/usr/bin/{program}", "-i", "127.0.0.1", "-p", str(port), *login]
    login_line = f"BasicAuth {user} {password}\n" if user else ""
    with open(f"{folder}/tinyproxy.conf", "w") as file:
        file.write(f"Port {port}\nListen 127.0.0.1\nTimeout 600\nLogLevel Critical\n{login_line}{lines}\n")
    return [f"/usr/bin/{program}", "-d", "-c", file.name]


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def is_listening(port: int, proxy: subprocess.Popen) -> bool:
    """Waits for that; false if the proxy has ended, since somebody else has taken the port."""
    while proxy.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                # While nobody listens on an ephemeral port, a socket may get connected to itself.
                if connection.getsockname() != connection.getpeername():
                    return True
        except OSError:
            time.sleep(0.01)
    return False


def start(program: str, wanted: int, *arguments: str) -> tuple[int, subprocess.Popen]:
    for _ in range(5):
        port = wanted
        if port == 0:
            with launcher.listen() as probe:
                port = launcher.port_of(probe)
        try:
            proxy = subprocess.Popen(
                command(program, port, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )
        except FileNotFoundError as error:
            sys.exit(f"{error.filename} is not installed: run `make setup`")
        if is_listening(port, proxy):
            return port, proxy
    sys.exit(f"{program} does not start")


def main() -> None:
    program, port, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="connect-server-") as folder:
        port, proxy = start(program, int(port), *arguments, folder)
        launcher.announce(proxy=port, pid=str(proxy.pid))
        while sys.stdin.buffer.read(4096):
            pass
        proxy.kill()
        proxy.wait()


main()
