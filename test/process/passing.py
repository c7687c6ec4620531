"""Starts a program the way a service manager does that has made its sockets (sd_listen_fds(3), sd_notify(3))."""
import ctypes
import fcntl
import os
import signal
import socket
import subprocess

# The descriptors have fixed numbers, and the variables name the process that they are meant for: only what runs in that
# process, before the program does, can see to both.
_PASS_ON = """count=$1; shift
for ((i = 0; i < count; ++i)); do eval "exec $((3 + i))<&$1 $1<&-"; shift; done
LISTEN_PID=$$ LISTEN_FDS=$count exec "$@"
"""
_libc = ctypes.CDLL(None)


def die_with_parent():
    _libc.prctl(1, signal.SIGKILL)


def popen_with(listeners, command, env, **more):
    """Popen(command), which finds these sockets as its descriptors 3, 4, …"""
    numbers = [fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD, 100) for listener in listeners]
    try:
        return subprocess.Popen(["bash", "-c", _PASS_ON, "pass-on", str(len(numbers)), *map(str, numbers), *command],
                                pass_fds=numbers, env=env, preexec_fn=die_with_parent, **more)
    finally:
        for number in numbers:
            os.close(number)


class Ear:
    """Where a service manager hears what its services say."""

    def __init__(self, directory, patience):
        self.path = os.path.join(directory, "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.settimeout(patience)

    def hear(self, what):
        said = self._socket.recv(1000).decode()
        if said != what:
            raise AssertionError(f"it said {said!r}, not {what!r}")

    def close(self):
        self._socket.close()
        os.unlink(self.path)
