#!/usr/bin/env python3
"""Writes the seeds from which the fuzzers begin: fuzz/seeds.py [DIR], by default fuzz/corpus/.

A seed is a good or nearly good input, so that a fuzzer need not guess what a request looks like; its name begins with
"seed-", or with "found-" where a target once failed on it. What fuzzing adds to a corpus has names that are hashes.
Checksums of journal files are left to the targets.
"""
import hashlib
import itertools
import pathlib
import struct
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def crlf(*lines, body=b""):
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def heads():
    host = "Host: a"
    yield crlf("GET / HTTP/1.1", host)
    yield crlf("GET /locks?prefix=a%20b&limit=10 HTTP/1.1", "Host: [::1]:8086", "Origin: http://a")
    yield crlf("OPTIONS * HTTP/1.1", "Host: a.example:80")
    yield crlf("OPTIONS http://a.example HTTP/1.1", "Host: b")
    yield crlf("GET https://a.example/x?y HTTP/1.1", "Host:")
    yield crlf("HEAD /healthz HTTP/1.0")
    yield crlf("GET /events HTTP/1.1", host, "Last-Event-ID: 17", "Authorization: Bearer x",
               "Accept: text/event-stream")
    yield crlf("POST /lock HTTP/1.1", host, "Content-Length: 12", "Expect: 100-continue")
    yield crlf("POST /lock HTTP/1.1", host, "Transfer-Encoding: chunked", "Connection: close")
    yield crlf("POST /lock HTTP/1.1", host, "Content-Length: 1", "Content-Length: 1")
    yield crlf("POST /lock HTTP/1.1", host, "Content-Length: 1", "Transfer-Encoding: chunked")
    yield crlf("POST /lock HTTP/1.1", host, "Transfer-Encoding: gzip, chunked")
    yield crlf("GET / HTTP/1.0", "Connection: keep-alive", "Host: v1.a:0")
    yield crlf("GET / HTTP/1.1", host, " folded: x")
    yield b"GET / HTTP/1.1\nHost: a\n\n"
    yield crlf("GET / HTTP/1.1")
    yield crlf("GET / HTTP/2.0", host)


def chunked_bodies():
    yield b"0\r\n\r\n"
    yield b"5\r\nhello\r\n0\r\n\r\n"
    yield b"1\r\na\r\n1\r\nb\r\n00\r\n\r\n"
    yield b"a;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n"
    yield b'3 ; q = "a\\"b" ; t\r\nabc\r\n0\r\n\r\n'
    yield b"FFFFFFFFFFFFFFFFF\r\n"
    yield b"5\nhello\n0\n\n"
    yield b"2\r\nabc\r\n0\r\n\r\n"


def connections():
    host = "Host: a"
    get = crlf("GET / HTTP/1.1", host)
    yield get + get + get
    yield b"\r\n" + get
    yield crlf("POST /lock HTTP/1.1", host, "Content-Length: 5", body=b"hello") + get
    for body in chunked_bodies():
        yield crlf("POST /batch HTTP/1.1", host, "Transfer-Encoding: chunked", body=body) + get
    yield crlf("POST /lock HTTP/1.1", host, "Content-Length: 65", body=b"x" * 65)
    yield crlf("GET / HTTP/1.1", host, "X: " + "x" * 300)
    yield crlf("POST /lock HTTP/1.1", host, "Expect: 100-continue", "Content-Length: 2", body=b"{}")
    yield from heads()


def answers():
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    yield b"HTTP/1.1 503 Busy\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    yield b"HTTP/1.1 503 Busy\r\nRetry-After: 9223372036854775807\r\n\r\nuntil the end"
    yield b"HTTP/1.0 200 OK\r\n\r\nuntil the end"
    yield b"HTTP/1.1 204 None\r\n\r\n"
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}behind"
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
    yield b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    yield b"\r\nHTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nTrailer: y\r\n\r\n"


LANE = b'"type":"pull","resource_id":"sha256:1","node_id":"node-a"'
# In the order of the target's table: the first byte chooses the path.
BODIES = [
    (0, b"{" + LANE + b"}"),
    (0, b"{" + LANE + b',"request_id":"r","scope":"resource","wait_ms":1000,"lease_ms":30000,"monitor":true,'
        b'"dereference":true,"info":"\\u00e4 \\"x\\""}'),
    (0, b"{" + LANE + b',"lease_ms":99,"wait_ms":-1,"scope":"x"}'),
    (0, b"{" + LANE + b',"type":"twice","other":[1.5e3,{"a":null}]}'),
    (1, b"{" + LANE + b',"token":7,"success":false,"error":"no room","permanent":true}'),
    (1, b"{" + LANE + b',"token":9007199254740992}'),
    (1, b"{" + LANE + b',"token":7,"success":true,"error":"none","permanent":true}'),
    (2, b"{" + LANE + b',"token":7,"lease_ms":1000,"done":1,"total":2}'),
    (3, b"{" + LANE + b"}"),
    (4, b'{"requests":[{"call":"lock",' + LANE + b'},{"call":"unlock",' + LANE + b',"token":1},{"call":"renew",' + LANE +
        b',"token":1},{"call":"cancel",' + LANE + b'},{"call":"none"},7]}'),
    (4, b'{"requests":[]}'),
    (4, b'{"requests":null}'),
    (5, b'{"type":"pull","resource_id":"a"}'),
    (5, b'{"type":"pull","resource_id":"a","request_id":"nobody"}'),
    (6, b'{"resource_id":"a","node_id":"b"}'),
    (7, b'{"resource_id":"a","node_id":"b"}'),
    (8, b'{"node_id":"b"}'),
    (9, b'{"type":"pull","resource_id":"a","reason":"gone"}'),
    (0, b"[]"), (0, b""), (0, b"{} {}"), (0, b'{"type":"\\ud800"}'), (0, b'{"type":"\xff"}'), (0, b'{"type":"\\u0001"}'),
    (1, b"{" + LANE + b',"token":7,"keep_ms":72000000,"result":"built 7.2\\n"}'),
    (1, b"{" + LANE + b',"error":"no","keep_ms":0,"result":""}'),
]

QUERIES = [
    (0, b"type=pull&resource_id=a&node_id=b&request_id=c"), (0, b"type=pull&resource_id=a%20b+c%2b&x=y"),
    (1, b""), (1, b"prefix=a&type=pull&state=held&limit=10"), (1, b"cursor=YQBwdWxs&limit=1000"), (1, b"state=completed&limit=0"),
    (1, b"limit=-1"), (1, b"limit=99999999999999999999"), (2, b"type=pull&resource_id=a"), (3, b"prefix=sha&type=pull"),
    (4, b"resource_id=a&limit=5&after=node-b"), (4, b"resource_id=a&resource_id=b"), (0, b"type=%"), (0, b"type=%zz"),
    (0, b"type=%ff"), (0, b"&&=&a"),
]

CLIENT_ANSWERS = [
    b'{"state":"acquired","token":7,"attempt":2,"previous_error":"x","references":{"nodes":["a"],"count":1}}',
    b'{"state":"queued","position":3,"holder":{"node_id":"a","since":"2026-01-01T00:00:00Z","done":1,"total":2,"token":1}}',
    b'{"state":"skipped"}', b'{"state":"cancelled"}', b'{"released":true,"already":true,"next":"b","waiters":["c"]}',
    b'{"renewed":true,"lease_ms":1000}', b'{"renewed":true,"lease_ms":18446744073709551615}', b'{"cancelled":true}',
    b'{"type":"a","resource_id":"b","state":"held","acquired":true,"completed":false,"position":0,"queue_length":1,'
    b'"holder":{"node_id":"a"},"queue":[{"node_id":"b","position":1}],"completion":{"node_id":"c","success":true}}',
    b'{"locks":[{"type":"a","resource_id":"b","state":"idle"}],"next_cursor":"x"}',
    b'{"resource_id":"a","count":2,"nodes":["b","c"],"changed":true}', b'{"node_id":"a"}', b'{"count":4294967296}',
    b'{"code":"not_leader","error":"e","leader":"http://b","references":{"nodes":["a"]}}',
    b'{"event":"granted","type":"a","resource_id":"b","node_id":"c","token":1,"attempt":1,"success":true}',
    b'{"answers":[{"status":200,"state":"acquired","token":1},{"status":409,"code":"busy"},{"status":200,"released":true},'
    b'{"status":200,"renewed":true,"lease_ms":5}]}', b"[]", b"", b"null", b'{"locks":7}',
]

STREAMS = [
    b"id: 1\ndata: {}\n\n", b": turnstile\n\n", b"event: reset\nid: 5\ndata: a\ndata: b\n\n",
    b"data\n\ndata:\n\ndata: \n\n",
    b"id: 1\r\ndata: x\r\n\r\n", b"id: 1\rdata: x\r\r", b"\xef\xbb\xbfdata: x\n\n",
    b"data: x\nid\n\nretry: 5\nnone\n:c\n\n",
]

DIGEST = b"sha256:" + b"0123456789abcdef" * 4
LONG_DIGEST = b"sha512:" + b"fedcba9876543210" * 8
DIGESTS = [
    DIGEST, LONG_DIGEST, DIGEST.upper(), DIGEST[:-1], DIGEST + b"0", b"default/1/layer-" + DIGEST, b"a@" + LONG_DIGEST,
    b"x" + DIGEST, b"-" + DIGEST, b"sha256:../../" + b"a" * 58, b"md5:00", b"",
]

FILTERS = [
    b'labels."containerd.io/gc.root"', b"digest==sha256:ab", b"digest~=/^sha256:a/", b"size!=4096,labels.a.b==c",
    b"labels.'a.b'==\"c\"", b"digest~=|a\\|b|", b'labels."a\\"b\\\\"!=x', b"digest~=(", b"digest=", b'a."', b"a==\t",
    b"\x00\x01ab", b"\x01\x01a\x01bc", b"\x02\x03a.b\x01c\x01",
]

CURSORS = [b"YQBwdWxs", b"", b"YQ", b"YR", b"17", b"0017", b"18446744073709551615", b"18446744073709551616", b"-1",
           b"+1",
           b"\x01apull", b"\x05sha:1push"]

URLS = [b"http://127.0.0.1:8086", b"https://a.example/", b"unix:/run/t.sock", b"unix:", b"http://", b"http://u@h",
        b"ftp://a",
        b"http://[::1]:1//", b"https://:80"]

VALUES = [
    b"500ms", b"10s", b"1.5h", b"0", b"1d", b"1e3s", b"nan", b"inf", b"-1s", b"-0s", b"1e15us", b"31.7d", b"0.1us",
    b"5 m",
    b"memory", b"file:/x", b"etcd://a", b"true", b"off", b"64", b"100000000", b"resource", b"client", b"json",
    b"warning",
    b"pull:on_success=share,references=add,guard=skip,voids=true", b"x:", b":", b"a:guard=refuse,,", b"a:b",
]


def string(text):
    return bytes([len(text)]) + text


# kind, fields (a bit each), and the fields; see src/journal/record_codec.h.
RECORDS = [
    struct.pack("<BH", 1, 0b0001111111111111) + b"\x21" + b"\x02" + string(b"pull") + string(b"a") + string(b"n") +
    string(b"r") +
    b"\x07" + struct.pack("<qq", 1000, 2000) + b"\x0a" + b"\x01\x02" + string(b"info") + string(b"error"),
    struct.pack("<BH", 2, 0b1100) + string(b"pull") + string(b"a"),
    struct.pack("<BH", 5, 0b1000000001110) + b"\x01" + string(b"pull") + string(b"a") + string(b"error"),
    struct.pack("<BH", 5, 0b10000000001110) + b"\x02" + string(b"pull") + string(b"a"),
    struct.pack("<BH", 12, 0b11000) + string(b"a") + string(b"n"),
    struct.pack("<BH", 14, 0b1000000) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    struct.pack("<BH", 17, 0b1000000) + b"\x80\x01",
]


def frame(kind, number, payload, records, size=None):
    head = struct.pack("<IIQqIIQIQI", 0x42537354, kind, number, 5, len(payload) if size is None else size, records,
                       0, 0, 0, 0)
    return head + payload + b"\xc5"


def batch(number, records):
    return frame(1, number, b"".join(records), len(records))


HEADER = bytes(32)
LOG = HEADER + batch(1, RECORDS[:2]) + batch(2, RECORDS[4:])
SNAPSHOT = HEADER + frame(2, 1, b"".join(RECORDS[:3]), 3) + frame(3, 2, struct.pack("<Q", 3), 0)


def journal_files():
    """The kind of file, what is not repaired, the first batch's number less one, content."""
    for content in (LOG, LOG + bytes(100), LOG[:-3], LOG + batch(3, RECORDS[5:6])[:30], LOG + b"\x01" * 40, HEADER, b"",
                    LOG + bytes(60) + batch(9, RECORDS[5:6]), HEADER + frame(1, 1, b"x", 1, size=2**32 - 1)):
        yield b"\0\0\0" + content
    yield b"\0\2\0" + LOG
    yield b"\0\1\0" + LOG
    yield b"\0\x80\0" + LOG
    yield b"\1\0\0" + SNAPSHOT
    yield b"\1\0\0" + SNAPSHOT[:-20]


def journal_directories():
    """Files: kind, number, what is not repaired, length, content."""
    def put(kind, number, content, left_alone=0):
        return bytes([kind, number, left_alone]) + struct.pack("<H", len(content)) + content
    later = HEADER + batch(3, RECORDS[5:6])
    yield b""
    yield put(0, 1, LOG)
    yield put(0, 1, LOG) + put(0, 3, later)
    yield put(0, 1, LOG) + put(0, 3, later[:-4])
    yield put(0, 1, LOG[:-4]) + put(0, 3, later)
    yield put(1, 3, SNAPSHOT) + put(0, 3, later)
    yield put(0, 1, LOG) + put(1, 3, SNAPSHOT) + put(0, 3, later + bytes(64))
    yield put(0, 1, LOG) + put(1, 3, SNAPSHOT, left_alone=1) + put(0, 3, later)
    yield put(1, 3, SNAPSHOT)
    yield put(0, 3, later)
    yield put(0, 1, HEADER)
    yield put(0, 1, bytes(40), left_alone=128)
    yield put(0, 1, LOG) + put(1, 3, SNAPSHOT, left_alone=255)
    yield put(0, 1, HEADER + batch(1, [RECORDS[2], RECORDS[3], RECORDS[1]]))
    yield put(0, 1, HEADER + frame(1, 1, RECORDS[1] + b"x", 1))
    yield put(0, 1, HEADER + frame(1, 1, RECORDS[1], 2**32 - 1))


def message(text, flag=0):
    return bytes([flag]) + struct.pack(">I", len(text)) + text


MESSAGES = [message(b""), message(b"hello") * 3, message(b"x" * 200), message(b"x" * 201), message(b"x", 1),
            message(b"abc")[:6],
            b"grpc \xc3\xa4 100% ", b" ", b"\xff" * 1500]


def http2(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def call_head(path, stream=1, flags=4, method=b"POST", kind=b"application/grpc"):
    """HEADERS whose fields are all literal, without Huffman's code."""
    fields = [(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", b"a"), (b"content-type", kind)]
    return http2(1, flags, stream, b"".join(b"\0" + string(name) + string(value) for name, value in fields))


def sessions():
    def data(text, stream=1, flags=1):
        return http2(0, flags, stream, text)
    for path in (b"/e", b"/l", b"/r", b"/t", b"/w", b"/none"):
        yield call_head(path) + data(message(b"hello"))
    yield call_head(b"/e") + data(message(b"hello")[:3], flags=0) + data(message(b"hello")[3:])
    yield call_head(b"/e") + data(message(b"hello")[:7])
    yield call_head(b"/e", flags=5)
    yield call_head(b"/e") + data(message(b"x", 1), flags=0) + data(b"more")
    yield call_head(b"/e") + data(message(b"x" * 2000), flags=0)
    yield call_head(b"/e", method=b"GET") + call_head(b"/e", stream=3, kind=b"text/html", flags=5)
    yield b"".join(call_head(b"/e", stream=n) + data(message(b"x"), stream=n) for n in (1, 3, 5, 7, 9))
    grant = struct.pack(">I", 1 << 20)
    yield call_head(b"/l") + data(message(b"x")) + http2(8, 0, 0, grant) + http2(8, 0, 1, grant)
    yield call_head(b"/l") + data(message(b"x")) + http2(3, 0, 1, struct.pack(">I", 8))
    yield http2(6, 0, 0, b"pingpong") + http2(4, 0, 0, struct.pack(">HI", 4, 0)) + call_head(b"/l") + \
        data(message(b"x"))
    yield call_head(b"/e") + http2(1, 5, 1, b"\0" + string(b"trailer") + string(b"x"))
    yield http2(7, 0, 0, bytes(8)) + http2(2, 0, 1, bytes(5)) + http2(5, 4, 1) + http2(9, 4, 1)
    yield call_head(b"/e")[:-4] + b"GET / HTTP/1.1\r\n\r\n"


def event(kind, error, operation=b"pull", reason=b""):
    return (bytes([3]) + struct.pack("<Q", kind) + bytes([kind, kind % 2]) +
            struct.pack("<QIQ", 7, 1, 1_700_000_000_000_000) + string(operation) + string(b"sha256:\xc3\xa4") +
            string(b"node") + string(b"r") + string(reason) + error)


def events():
    for kind in range(7):
        yield event(kind, b'error "x"\r\n\0\x7f', reason=b"reason\n")
    # A text with one byte that must be escaped, and those beside it.
    for byte in b"\x01\x1f\x20\x7e\x7f\"\\":
        yield event(2, b"at the end" + bytes([byte]), operation=bytes([byte]))


# Inputs that a target has failed on. Each has a unit test, too.
FOUND = {
    "answer_parser": {
        "no-chunks-byte-by-byte": b"\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "end-of-a-head-in-a-piece-of-its-own": b"\xffHTTP/1.1 200 OK\r\n\r\n",
        "quoted-text-that-runs-over-its-line": b"\x01HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nDDDDD;D=\"\r\n" + b"x" * 100,
    },
    "http_requests": {
        "bare-line-feed-behind-the-limit": b"\x07GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 300 + b"\r\nM\n",
    },
    "rpc_messages": {"only-the-middles-of-letters": b"\xff" + b"\x85" * 120},
}


# Of the secret that the target knows.
KNOWN = hashlib.sha256(b"ts_known").hexdigest().encode()
CREDENTIALS = [
    b"", b"# nobody\n", b"credential = 1\n", b"[credential]\nname = 'a'\n", b"[[stranger]]\nname = 'a'\n",
    b"[[credential]]\nname = \"node-a\"\nsecret_sha256 = \"" + KNOWN + b"\"\nrole = \"client\"\n"
    b"nodes = [\"node-a\", \"ci-*\"]\nresources = [\"sha256:\", \"build/\"]\n",
    b"[[credential]]\nname = 'r'\nsecret_sha256 = '" + KNOWN + b"'\nrole = 'read'\nresources = ['build/']\n",
    b"[[credential]]\nname = 'a'\nsecret_sha256 = '" + KNOWN + b"'\nrole = 'admin'\n"
    b"[[credential]]\nname = 'b'\nsecret_sha256 = '" + b"0" * 64 + b"'\nrole = 'client'\n",
    b"[[credential]]\nname = 'a'\nsecret_sha256 = 'ts_by_mistake'\nrole = 'client'\n",
    b"[[credential]]\nname = 'a'\nrole = 'client'\n", b"[[credential]]\nname = ''\nrole = 'none'\n",
    b"[[certificate]]\nname = \"node-*\"\nrole = \"client\"\n",
    b"[[certificate]]\nname = 'a'\nrole = 'admin'\nnodes = ['x']\n",
    b"[[certificate]]\nname = 'a'\nrole = 'client'\nnodes = []\n",
    b"[[certificate]]\nname = '*'\nrole = 'client'\nresources = ['', 1]\n",
    b"[[unix_user]]\nuser = \"root\"\nrole = \"admin\"\n[[unix_user]]\nuser = '1000'\nrole = 'client'\n",
    b"[[unix_user]]\nuser = 'nobody-of-that-name'\nrole = 'read'\n",
    b"credential = [{name = 'a', secret_sha256 = '" + KNOWN + b"', role = 'client'}]\n",
    b"[[certificate]]\nname = \"\"\"a\n\"\"\"\nrole = 'read'\n", b"[[certificate]]\n\"na\\nme\" = 'a'\n",
    b"a = [[[[[[[[[[]]]]]]]]]]\n", b"a.b.c.d.e = 1979-05-27T07:32:00.999999-07:00\n", b"a = 0x7fffffffffffffff_f\n",
]


def sliced(inputs, *more):
    """Each with the length of its pieces before it, and whatever else the target takes."""
    longest = itertools.cycle([0, 1, 2, 3, 7, 16, 64, 255])
    return [bytes([next(longest), *more]) + each for each in inputs]


def chosen(pairs):
    return [bytes([which]) + each for which, each in pairs]


SEEDS = {
    "answer_parser": lambda: sliced(answers()),
    "client_answers": lambda: CLIENT_ANSWERS,
    "content_digest": lambda: DIGESTS,
    "content_filter": lambda: FILTERS,
    "credentials_file": lambda: CREDENTIALS,
    "cursor": lambda: CURSORS,
    "http_chunked": lambda: sliced(chunked_bodies(), 64),
    "http_head": lambda: list(heads()),
    "http_requests": lambda: sliced(connections()),
    "json_commands": lambda: chosen(BODIES),
    "journal_recovery": lambda: list(journal_directories()),
    "journal_segment": lambda: list(journal_files()),
    "query_strings": lambda: chosen(QUERIES),
    "record_codec": lambda: RECORDS + [b"".join(RECORDS), RECORDS[2] + RECORDS[3], RECORDS[2] * 2],
    "rpc_messages": lambda: sliced(MESSAGES),
    "rpc_session": lambda: [bytes([1 + i * 11 % 254]) + each for i, each in enumerate(sessions())],
    "server_url": lambda: URLS,
    "settings_values": lambda: [bytes([row]) + value for row, value in zip(itertools.cycle(range(45)), VALUES * 2)],
    "sse_events": lambda: list(events()),
    "sse_reader": lambda: sliced(STREAMS + [b"".join(STREAMS)], 0),
}


def main():
    corpus = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER / "corpus"
    for target, seeds in SEEDS.items():
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(seeds()):
            (folder / f"seed-{number:02}").write_bytes(seed)
        for name, found in FOUND.get(target, {}).items():
            (folder / f"found-{name}").write_bytes(found)


if __name__ == "__main__":
    main()
