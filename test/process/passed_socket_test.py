"""A server whose socket was made by somebody else (systemd's socket activation): what it serves, what it says to the one who
started it, and that nobody is refused while it is started anew."""
import contextlib
import os
import signal
import socket
import threading
import unittest

import harness
from client import Client
from harness import binary, plain_environment, temporary_directory, wait_until
from passing import Ear, popen_with

class Manager:
    """Stands in for the service manager: it has the sockets, starts the server, and hears what that has to say."""

    def __init__(self, *listeners):
        self.listeners = listeners
        self.directory = temporary_directory()
        self._ear = Ear(self.directory, harness.PATIENCE)
        self.log_path = os.path.join(self.directory, "log")
        self.process = None

    def start(self, *flags, wait=True, store=None):
        command = [binary(), "--store", store or "file:" + os.path.join(self.directory, "data"), *flags]
        with open(self.log_path, "ab") as log:
            self.process = popen_with(self.listeners, command, plain_environment(NOTIFY_SOCKET=self._ear.path), stdout=log,
                                      stderr=log)
        if wait:
            self._ear.hear("READY=1")
        return self

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self._ear.hear("STOPPING=1")
        return self.process.wait(harness.PATIENCE)

    def log(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._ear.close()
        for listener in self.listeners:
            listener.close()


def tcp(host="127.0.0.1"):
    listener = socket.create_server((host, 0))
    return listener, listener.getsockname()[1]


class Asker(threading.Thread):
    """One new connection after the other, each with one question; keeps what went wrong."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self._port, self.stopping, self.answers, self.wrong = port, threading.Event(), 0, []

    def run(self):
        while not self.stopping.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=harness.PATIENCE) as made:
                    made.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    said = made.recv(100)
                # Whoever had been accepted when it stopped may be told to come again: that is an answer.
                if said.startswith(b"HTTP/1.1 "):
                    self.answers += 1
                elif said:
                    self.wrong.append(said)
            except ConnectionRefusedError as error:
                self.wrong.append(error)
            except OSError:
                pass  # it was accepted by a server that ended: not what this is about


class PassedSocketTest(unittest.TestCase):
    def manager(self, *listeners):
        made = Manager(*listeners)
        self.addCleanup(made.close)
        return made

    def test_nobody_is_refused_while_the_server_is_started_anew(self):
        listener, port = tcp()
        manager = self.manager(listener).start()
        asker = Asker(port)
        asker.start()
        for _ in range(4):
            so_far = asker.answers
            wait_until(lambda: asker.answers > so_far + 10, "it answers")
            self.assertEqual(manager.stop(), 0, manager.log())
            # While there is no server at all somebody waits.
            with socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE) as waiting:
                waiting.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                manager.start()
                self.assertTrue(waiting.recv(100).startswith(b"HTTP/1.1 200 "))
        asker.stopping.set()
        asker.join()
        self.assertEqual(asker.wrong, [])

    def test_a_kill_refuses_nobody_either(self):
        listener, port = tcp()
        manager = self.manager(listener).start()
        manager.process.kill()
        manager.process.wait()
        with socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE) as waiting:
            waiting.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            manager.start()
            self.assertTrue(waiting.recv(100).startswith(b"HTTP/1.1 200 "))

    def test_who_asks_before_it_is_there_is_told_of_the_servers_too(self):
        """What waits at the socket is read in the moment in which the server begins to serve."""
        for path in "/servers", "/metrics":
            listener, port = tcp()
            with contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE)) as waiting:
                waiting.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                self.manager(listener).start("--host", "x", "--standby", "forward", wait=False, store="etcd://127.0.0.1:1/p")
                self.assertTrue(waiting.recv(100).startswith(b"HTTP/1.1 200 "), path)

    def test_it_serves_all_that_were_passed_and_nothing_else(self):
        listener, port = tcp()
        path = os.path.join(temporary_directory(), "socket")
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(path)
        unix.listen()
        spare, other = tcp()
        spare.close()
        manager = self.manager(listener, unix).start("--listen", f"127.0.0.1:{other}")
        self.assertIn(f"listening on 127.0.0.1:{port}\nlistening on unix:{path}\n", manager.log())
        with contextlib.closing(Client("127.0.0.1", port).connection) as connection:
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().status, 200)
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(harness.PATIENCE)
            made.connect(path)
            made.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertTrue(made.recv(100).startswith(b"HTTP/1.1 200 "))
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", other))
        self.assertEqual(manager.stop(), 0)
        self.assertTrue(os.path.exists(path), "it is not the server's to remove")

    def test_what_other_machines_reach_must_be_meant_here_too(self):
        listener, _ = tcp("0.0.0.0")
        manager = self.manager(listener).start(wait=False)
        self.assertEqual(manager.process.wait(harness.PATIENCE), 2)
        self.assertIn("--insecure", manager.log())
        manager.start("--insecure")


if __name__ == "__main__":
    harness.main()
