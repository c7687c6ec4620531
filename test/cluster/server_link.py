"""What lies between a node and the lock server in tests: a wire that can be cut, at once or at a certain call, or be long.

A cut is silence: what is sent does not arrive, and nobody is told. Who connects meanwhile hears nothing either. When it is
mended, connections from before are gone, as where a router has forgotten them.
"""
import socket
import threading
import time


class ServerLink:
    """Threads: three for each connection."""

    def __init__(self, host, server_port):
        self._server = (host, server_port)
        self.delay = 0  # seconds, each way
        self._mutex = threading.Lock()
        self._pairs = []      # of sockets, of the connections that are open
        self._mended = threading.Event()
        self._mended.set()
        self._cut_at = None   # texts that must be in a request
        self._arrives = False
        self._behind = lambda: True
        self.cut_begun = threading.Event()
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self._mended.clear()
        self.cut_begun.set()

    def cut_at(self, *texts, arrives=False, behind=lambda: True):
        """Cuts when a request comes that contains all of these: that one does not arrive any more, or its answer does not.
        It is held until `behind`() is true, so that no other call is cut with it."""
        with self._mutex:
            self.cut_begun.clear()
            self._cut_at, self._arrives, self._behind = [text.encode() for text in texts], arrives, behind

    def mend(self):
        with self._mutex:
            self._cut_at = None
        if not self._mended.is_set():
            self._drop_all()
            self._mended.set()

    def close(self):
        self._closed = True
        self._listener.close()
        self._drop_all()
        self._mended.set()

    def _drop_all(self):
        with self._mutex:
            pairs, self._pairs = self._pairs, []
        self._close(*pairs)

    @staticmethod
    def _close(*pairs):
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def _accept(self):
        while not self._closed:
            try:
                node, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(node,), daemon=True).start()

    def _serve(self, node):
        if not self._mended.is_set():
            self._keep((node,))
            return  # until it is mended, and then it is too late for this one
        try:
            server = socket.create_connection(self._server)
        except OSError:
            node.close()  # as the server's machine would, where nobody listens
            return
        for end in (node, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (node, server)
        self._keep(pair)
        threading.Thread(target=self._pump, args=(server, node, pair, False), daemon=True).start()
        self._pump(node, server, pair, True)

    def _keep(self, pair):
        with self._mutex:
            self._pairs.append(pair)

    def _pump(self, source, sink, pair, requests):
        head = b""
        try:
            while chunk := source.recv(65536):
                if requests and self._cut_at:
                    # A call and its body may come in two parts.
                    head = (head + chunk)[-8192:] if not chunk.startswith((b"POST ", b"GET ")) else chunk
                    with self._mutex:
                        begins = self._cut_at is not None and all(text in head for text in self._cut_at)
                        self._cut_at = None if begins else self._cut_at
                    if begins:
                        while not self._behind():
                            time.sleep(0.02)
                        self.cut()
                        if self._arrives:
                            sink.sendall(chunk)
                if self.delay:
                    time.sleep(self.delay)
                if not self._mended.is_set():
                    return  # lost, with all that follows on this connection; it is closed when the cut ends
                sink.sendall(chunk)
        except OSError:
            pass
        if not self._mended.is_set():
            return
        with self._mutex:
            self._pairs = [other for other in self._pairs if other is not pair]
        self._close(pair)
