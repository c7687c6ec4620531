"""Bad input of every kind to the real server: each gets its documented error, changes nothing and harms nobody.

Each test ends by showing that the state is as before and that a normal request still works.
"""
import json
import random
import socket

import harness
from client import exchange, parse_answers, read_all
from harness import ServerCase

# All that JSON has, token by token.
TOKENS = [b"{", b'"a"', b":", b"[", b"-1.5e+3", b",", b"true", b",", b"null", b"]", b",", b'"b"', b":", b"{", b"}", b"}"]


def nearly_json():
    """The tokens with one of them missing, twice, or something else in its place; and cut behind every byte."""
    whole = b"".join(TOKENS)
    texts = {whole[:size] for size in range(len(whole))}
    others = [b"'a'", b"a", b"01", b"+1", b"1.", b".5", b"1e", b"0x1", b"NaN", b"-", b"True", b"nul", b'"', b"\\", b"/**/",
              b'"\\x"', b'"\\u12"', b'"\\ud800"', b'"\xc3"', b"\0", b"\x0b", b"\xa0", *(b'"%c"' % code for code in range(32))]
    for at, token in enumerate(TOKENS):
        for instead in [b"", token + token, token + b" " + token, *others]:
            texts.add(b"".join([*TOKENS[:at], instead, *TOKENS[at + 1:]]))
    return texts | set(others)


def is_json(text):
    """What Python's reader takes, without the words that only it knows."""
    def refuse(word):
        raise ValueError(word)
    try:
        value = json.loads(text.decode(), parse_constant=refuse)
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be written
    except ValueError:
        return False
    return True


class BadInputCase(ServerCase):
    """A lane with a holder and a waiter, which no bad request may change."""

    def setUp(self):
        super().setUp()
        self.token = self.hold("holder", request_id="r")
        self.queue("waiter")
        self.before = self.everything()

    def tearDown(self):
        self.assertEqual(self.everything(), self.before, "a bad request has changed something")
        self.hold("normal", resource_id=self.resource + "-normal")
        super().tearDown()

    def everything(self):
        client = self.server.client()
        return [client.get("/locks", prefix=self.resource, limit=1000).body,
                client.get("/refs", resource_id=self.resource).body]

    def fields(self, **changes):
        all_fields = {"type": "pull", "resource_id": self.resource, "node_id": "holder", "request_id": "r", **changes}
        return {name: value for name, value in all_fields.items() if value is not MISSING}

    def assert_invalid(self, answer, what=None):
        self.assertEqual((answer.status, answer.body.get("code")), (400, "invalid"), (what, answer))
        self.assertEqual(answer.body.keys(), {"error", "code"})
        self.assertGreater(len(answer["error"]), 10)

    def raw(self, data, **options):
        return parse_answers(exchange((self.server.host, self.server.port), data, **options))

    def assert_raw_refused(self, data, status, code, **options):
        answers = self.raw(data, **options)
        self.assertEqual(len(answers), 1, (data[:300], answers))
        got, headers, body = answers[0]
        self.assertEqual((got, json.loads(body)["code"]), (status, code), (data[:300], body))
        self.assertEqual(headers["connection"], "close", data[:300])
        self.assertTrue(headers["content-type"].startswith("application/json"))


MISSING = object()


class FieldTest(BadInputCase):
    def test_S1_a_required_field_that_is_missing_empty_null_or_of_a_wrong_type_is_400(self):
        needed = {"/lock": ["type", "resource_id", "node_id"], "/unlock": ["type", "resource_id", "node_id"],
                  "/renew": ["type", "resource_id", "node_id", "token"], "/cancel": ["type", "resource_id", "node_id"],
                  "/lock/status": ["type", "resource_id"], "/admin/break": ["type", "resource_id", "reason"],
                  "/refs/add": ["resource_id", "node_id"], "/refs/release": ["resource_id", "node_id"],
                  "/refs/release_node": ["node_id"]}
        for path, names in needed.items():
            for name in names:
                for wrong in MISSING, "", None, True, [], {}, 1.5, -1, [1], {"a": 1}, "text" if name == "token" else 7:
                    body = self.fields(**{"token": self.token, "reason": "why", name: wrong})
                    self.assert_invalid(self.client.call("POST", path, body), (path, name, wrong))

    def test_S1_an_optional_field_of_a_wrong_type_or_out_of_range_is_400(self):
        wrong = {
            "/lock": {"request_id": [1, True, []], "scope": ["all", 1, "Resource"],
                      "wait_ms": [-1, "1", 1.5, True, 2**64],
                      "lease_ms": [99, 86_400_001, -1, 0, "100", 1e3, 2**53], "monitor": [0, "true", []],
                      "dereference": [1, "false"], "info": [1, {}]},
            "/unlock": {"token": [-1, 2**53, 2**64, 1.0, "1", True], "success": [1, "true"], "error": [1, True, []],
                        "permanent": ["true", 0]},
            "/renew": {"token": [0, -1, 2**53, "1"], "lease_ms": [99, 86_400_001], "done": [-1, "1", 2**53, 0.5],
                       "total": [-1, "1", 2**53]},
        }
        for path, fields in wrong.items():
            for name, values in fields.items():
                for value in values:
                    body = self.fields(**{"token": self.token, name: value})
                    self.assert_invalid(self.client.call("POST", path, body), (path, name, value))

    def test_section_9_a_field_that_is_too_long_is_400(self):
        limits = {"type": 64, "resource_id": 1024, "node_id": 256, "request_id": 256, "info": 4096}
        for name, limit in limits.items():
            self.assert_invalid(self.client.call("POST", "/lock", self.fields(**{name: "x" * (limit + 1)})), name)
            # Lengths are of bytes, not of characters.
            self.assert_invalid(self.client.call("POST", "/lock", self.fields(**{name: "é" * (limit // 2 + 1)})), name)
        self.assert_invalid(self.client.call("POST", "/unlock", self.fields(token=self.token, error="x" * 4097)))
        self.assert_invalid(self.client.call("POST", "/admin/break", self.fields(reason="x" * 4097)))

    def test_section_9_control_characters_in_names_are_400(self):
        for name in "type", "resource_id", "node_id", "request_id":
            for code in [*range(0x20), 0x7F]:
                wrong = f"a{chr(code)}b"
                self.assert_invalid(self.client.call("POST", "/lock", self.fields(**{name: wrong})), (name, code))
        for code in 0, 10, 13, 31, 127:
            self.assert_invalid(self.client.get("/lock/status", type="pull", resource_id=f"a{chr(code)}"), code)
            self.assert_invalid(self.client.get("/lock/subscribe", type="pull", resource_id=f"a{chr(code)}"), code)

    def test_section_9_a_known_field_twice_is_400_even_if_one_is_null(self):
        text = json.dumps(self.fields(node_id="other"))[:-1]
        for twice in '"node_id":"other"', '"node_id":null', '"type":"pull"', '"\\u006eode_id":"other"':
            self.assert_invalid(self.client.call("POST", "/lock", text + "," + twice + "}"), twice)

    def test_section_9_a_query_that_is_wrong_is_400(self):
        for query in ("type=pull", "resource_id=x", "type=pull&resource_id=%", "type=pull&resource_id=%zz",
                      "type=pull&resource_id=%f", "type=pull&resource_id=%ff", "type=pull&resource_id=a&resource_id=a",
                      "type=pull&resource_id=a%00b", "type=&resource_id=a", "type=pull&resource_id=a&request_id=r",
                      "type=pull&resource_id=" + "x" * 1025):
            for path in "/lock/status", "/lock/subscribe":
                self.assert_invalid(self.client.call("GET", f"{path}?{query}"), query)
        self.assert_invalid(self.client.call("GET", "/refs"))
        self.assert_invalid(self.client.call("GET", "/locks?limit=ten"))
        self.assert_invalid(self.client.call("GET", "/events?prefix=%c3%28"))


class JsonTest(BadInputCase):
    def test_S1_texts_that_are_not_json_are_400_on_every_path(self):
        # The parser's strictness is judged in src/api/json_*_test.cc; here that no path goes around it.
        opening = json.dumps(self.fields(node_id="other"))[:-1].encode() + b',"unknown":'
        tried = 0
        for text in sorted(nearly_json()):
            if is_json(opening + text + b"}"):
                continue
            tried += 1
            for target in "/lock", "/unlock", "/batch", "/lock/status":
                self.assert_invalid(self.client.call("POST", target, text), (target, text))
            self.assert_invalid(self.client.call("POST", "/lock", opening + text + b"}"), text)
        self.assertGreater(tried, 250)

    def test_S1_a_body_that_is_no_object_is_400(self):
        for text in (b"", b" ", b"[]", b"1", b'"a"', b"null", b"true", b"{}{}", b"{} x", b"{", b"}", b"\xef\xbb\xbf{}",
                     b"\0"):
            for path in "/lock", "/unlock", "/renew", "/cancel", "/batch", "/lock/status", "/refs/add", "/admin/break":
                self.assert_invalid(self.client.call("POST", path, text), (path, text))

    def test_section_9_bytes_that_are_not_utf_8_are_400_wherever_they_are(self):
        opening = json.dumps(self.fields(node_id="other"))[:-1].encode()
        for wrong in b"\xff", b"\xc3", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe2\x28\xa1":
            self.assert_invalid(self.client.call("POST", "/lock", opening + b',"info":"' + wrong + b'"}'), wrong)
            self.assert_invalid(self.client.call("POST", "/lock", opening + b',"unknown":"' + wrong + b'"}'), wrong)
            self.assert_invalid(self.client.call("POST", "/lock", opening + b',"' + wrong + b'":1}'), wrong)

    def test_S1_deep_nesting_is_400(self):
        for deep in "[" * 30_000, "[" * 30_000 + "]" * 30_000, '{"a":' * 10_000:
            self.assert_invalid(self.client.call("POST", "/lock", '{"unknown":' + deep + "}"))

    def test_section_9_a_batch_that_is_none_is_400(self):
        for body in {}, {"requests": {}}, {"requests": 1}, {"requests": None}, {"requests": "[]"}, []:
            self.assert_invalid(self.client.call("POST", "/batch", body), body)
        self.assert_invalid(self.client.call("POST", "/batch", '{"requests":[],"requests":[]}'))


class FramingTest(BadInputCase):
    def unlock_body(self):
        return json.dumps(self.fields(token=self.token)).encode()

    def test_framing_both_content_length_and_transfer_encoding_is_400_and_the_connection_closes(self):
        body = self.unlock_body()
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        for first, second in ((b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked"),
                              (b"Transfer-Encoding: chunked", b"Content-Length: %d" % len(body))):
            request = b"POST /unlock HTTP/1.1\r\nHost: x\r\n%s\r\n%s\r\n\r\n%s" % (first, second, chunked)
            self.assert_raw_refused(request, 400, "invalid")

    def test_framing_a_smuggled_second_request_is_never_run(self):
        body = self.unlock_body()
        smuggled = b"POST /unlock HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        for head in (b"Content-Length: 0\r\nTransfer-Encoding: chunked", b"Content-Length: 0\r\nContent-Length: 5",
                     b"Content-Length: 0, 5", b"Content-Length: +0", b"Content-Length: 0x0", b"Content-Length: -1",
                     b"Content-Length: 99999999999999999999", b"Content-Length:", b"Transfer-Encoding: gzip",
                     b"Transfer-Encoding: chunked, identity",
                     b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                     b"Transfer-Encoding : chunked", b"Transfer-Encoding:\x0bchunked", b"Content-Length : 0"):
            answers = self.raw(b"POST /lock/status HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n%s" % (head, smuggled))
            self.assertIn([status for status, _, _ in answers], ([400], [413]), head)

    def test_framing_bare_line_feeds_carriage_returns_nul_and_folding_are_400(self):
        for data in (b"POST /unlock HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
                     b"GET /heal\x00thz HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n folded\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\r\n\tfolded: b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\r\n: no name\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
                     b"GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
                     b"GET /healthz HTTP/1.1 \r\nHost: x\r\n\r\n",
                     b"GET /healthz\r\nHost: x\r\n\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            self.assert_raw_refused(data, 400, "invalid")

    def test_framing_chunks_that_are_not_well_formed_are_400(self):
        head = b"POST /unlock HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        for chunks in (b"x\r\n", b"-1\r\n", b"\r\n", b"1;\n", b"5\r\nabc\r\n0\r\n\r\n", b"2\r\n{}x\r\n0\r\n\r\n",
                       b"2\n{}\n0\n\n", b"2\r\n{}\n0\r\n\r\n", b" 2\r\n{}\r\n0\r\n\r\n", b"0x2\r\n{}\r\n0\r\n\r\n",
                       b"2\x00\r\n{}\r\n0\r\n\r\n", b"2;" + b"x" * 9000 + b"\r\n{}\r\n0\r\n\r\n",
                       b"0\r\n" + b"A: b\r\n" * 9000 + b"\r\n"):
            self.assert_raw_refused(head + chunks, 400, "invalid")
        for size in b"10001\r\n", b"FFFFFFFFFFFFFFFF\r\n", b"fffffffffffffffffffff\r\n":
            self.assert_raw_refused(head + size, 413, "too_large")

    def test_section_9_a_head_that_is_too_large_is_431(self):
        for head in (b"GET /healthz HTTP/1.1\r\nA: " + b"x" * 20_000 + b"\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 5_000 + b"\r\n",
                     b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"x" * 20_000):
            answers = self.raw(head)
            self.assertEqual(len(answers), 1)
            self.assertEqual((answers[0][0], json.loads(answers[0][2])["code"]), (431, "headers_too_large"))
            self.assertIn("send fewer", json.loads(answers[0][2])["error"])

    def test_section_9_L17_a_body_of_100_MB_is_413_before_it_is_sent(self):
        for path, size in (b"/lock", 104857600), (b"/batch", 104857600), (b"/lock", 65537), (b"/batch", 1048577):
            head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path, size)
            self.assert_raw_refused(head, 413, "too_large")
            self.assertIn("send less", json.loads(self.raw(head)[0][2])["error"])

    def test_L17_a_body_of_100_MB_that_is_sent_all_the_same_is_cut_off_and_costs_no_memory(self):
        before = self.server.resident_kib()
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        for head in b"Transfer-Encoding: chunked\r\n\r\n", b"Content-Length: 104857600\r\n\r\n":
            with socket.create_connection((self.server.host, self.server.port), timeout=harness.PATIENCE) as raw:
                sent = 0
                try:
                    raw.sendall(b"POST /lock HTTP/1.1\r\nHost: x\r\n" + head)
                    while sent < 104857600:
                        raw.sendall(piece)
                        sent += len(piece)
                except OSError:
                    pass
                self.assertLess(sent, 104857600, "nobody stopped the body")
                read_all(raw)
        if harness.memory_counts():
            self.assertLess(self.server.resident_kib() - before, 50_000)

    def test_section_9_garbage_and_other_protocols_get_400_or_a_closed_connection(self):
        hello = bytes.fromhex("16030100c8010000c40303") + bytes(range(189))
        http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100)
        redis, ssh = b"*1\r\n$4\r\nPING\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"
        chance = random.Random(1)
        for data in [hello, http2, redis, ssh] + [chance.randbytes(chance.randint(1, 3000)) for _ in range(200)]:
            for status, headers, body in self.raw(data, half_close=True):
                self.assertIn(status, (400, 431), data[:100])
                self.assertEqual(json.loads(body).keys(), {"error", "code"})

    def test_framing_a_request_cut_off_at_every_byte_changes_nothing(self):
        body = self.unlock_body()
        whole = b"POST /unlock HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        for size in range(len(whole)):
            self.assertEqual(self.raw(whole[:size], half_close=True), [], whole[:size])


class SlowTest(BadInputCase):
    # Long enough for everybody else's requests on a machine that stalls.
    flags = ("--header-timeout", "3s", "--body-timeout", "3s")

    def test_section_9_L17_a_head_that_does_not_arrive_in_time_is_408(self):
        self.assert_raw_refused(b"GET /healthz HTTP/1.1\r\nHost: x\r\n", 408, "timeout")

    def test_section_9_L17_a_body_that_does_not_arrive_in_time_is_408(self):
        self.assert_raw_refused(b"POST /lock HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", 408, "timeout")

    def test_L17_sending_one_byte_after_the_other_does_not_win_more_time(self):
        with socket.create_connection((self.server.host, self.server.port), timeout=harness.PATIENCE) as raw:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: ")

            def cut_off():
                try:
                    raw.sendall(b"x")
                except OSError:
                    return True
                return False
            # The head may have 16 KiB, so that at this pace it would take minutes.
            harness.wait_until(cut_off, "the slow one is cut off", every=0.02)


if __name__ == "__main__":
    harness.main()
