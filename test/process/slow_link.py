"""A link that takes its time: a proxy on loopback that hands every byte on after a delay, in both directions."""
import collections
import selectors
import socket
import threading
import time


class SlowLink:
    """`delay` seconds each way, without any limit of the rate."""

    def __init__(self, host, port, delay):
        self._target, self._delay = (host, port), delay
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._on_the_way = collections.deque()  # (when it arrives, where, bytes); b"": the sender has ended
        self._others, self._end = {}, False
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._end:
            wait = max(0, self._on_the_way[0][0] - time.monotonic()) if self._on_the_way else 0.1
            for key, _ in self._selector.select(min(wait, 0.1)):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._take(key.fileobj)
            while self._on_the_way and self._on_the_way[0][0] <= time.monotonic():
                self._arrive(*self._on_the_way.popleft()[1:])

    def _accept(self):
        near, _ = self._listener.accept()
        far = socket.create_connection(self._target)
        for one, other in (near, far), (far, near):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._others[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _take(self, sender):
        try:
            piece = sender.recv(65536)
        except OSError:
            piece = b""
        if not piece:
            self._selector.unregister(sender)
        self._on_the_way.append((time.monotonic() + self._delay, self._others[sender], piece))

    def _arrive(self, receiver, piece):
        try:
            if piece:
                receiver.sendall(piece)
            else:
                receiver.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has ended, too

    def close(self):
        self._end = True
        self._thread.join()
        for end in self._others:
            end.close()
        self._listener.close()
        self._selector.close()
