"""What lies between the nodes and the registry in tests: counts what leaves it, and can be slow, stop or lie.

The registry itself is the real one; only through here can a test make a download last until it has seen enough.
"""
import collections
import http.client
import http.server
import threading
import time

CHUNK = 128 * 1024


class RegistryProxy:
    """Threads: one for each connection. `delivered[path]` are the bytes of a blob that were sent, `gets` how often."""

    def __init__(self, host, registry_port):
        self.host, self.registry_port = host, registry_port
        self.gets = collections.Counter()
        self.delivered = collections.Counter()
        self.corrupt = set()          # paths of which one byte is changed
        self.bytes_per_second = None  # of each connection
        self.pause_at = {}            # path -> (bytes, Event): there it stops until the event comes
        self.paused = collections.defaultdict(threading.Event)
        self._mutex = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                proxy._serve(self)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # a node that was killed resets its connection

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        for _, event in self.pause_at.values():
            event.set()
        self._server.shutdown()
        self._server.server_close()

    def blob_gets(self):
        """digest -> how often it was asked for, of manifests and blobs."""
        with self._mutex:
            counts = collections.Counter()
            for path, count in self.gets.items():
                if "sha256:" in path:
                    counts[path[path.index("sha256:"):]] += count
            return counts

    def bytes_sent(self):
        with self._mutex:
            return sum(self.delivered.values())

    def forget(self):
        with self._mutex:
            self.gets.clear()
            self.delivered.clear()

    def _serve(self, handler):
        upstream = http.client.HTTPConnection(self.host, self.registry_port)
        try:
            upstream.request(handler.command, handler.path,
                             headers={k: v for k, v in handler.headers.items() if k.lower() != "accept-encoding"})
            answer = upstream.getresponse()
            handler.send_response(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in ("connection", "server", "date"):
                    handler.send_header(key, value)
            handler.end_headers()
            if handler.command == "GET":
                with self._mutex:
                    self.gets[handler.path] += 1
                self._pass_on(handler, answer)
        except OSError:
            handler.close_connection = True  # the node has gone; that is what some tests are about
        finally:
            upstream.close()

    def _pass_on(self, handler, answer):
        path, sent = handler.path, 0
        while chunk := answer.read(CHUNK):
            if path in self.corrupt and sent == 0:
                chunk = bytes([chunk[0]]) + bytes([chunk[1] ^ 1]) + chunk[2:] if len(chunk) > 1 else chunk
            handler.wfile.write(chunk)
            sent += len(chunk)
            with self._mutex:
                self.delivered[path] += len(chunk)
            if path in self.pause_at and sent >= self.pause_at[path][0]:
                self.paused[path].set()
                self.pause_at[path][1].wait()
            if self.bytes_per_second:
                time.sleep(len(chunk) / self.bytes_per_second)
