"""src/api/openapi.yaml is valid, and it is true: the answers of real servers match it, and what it describes happens.

Both ways. Every answer that openapi_exchanges.py provokes must be described: its status, its content type, its headers,
its body without a field too many, its code named in the status' description. And everything that is described (each
status of each operation, each code there, each field, each value of an enumeration) must have been provoked, or stands
in NOT_PROVOKED with a reason.
"""
import json
import os
import re
import sys
import unittest

try:
    import openapi_file
except ImportError as missing:
    sys.exit(f"{missing}: run with Debian's /usr/bin/python3; ./dev test installs what it needs")
import harness
import openapi_exchanges
from openapi_file import Description, closed, described, faults_of, seen_in

# By code, or by field: why nobody can see it here.
NOT_PROVOKED = {
    "not_leader": "with several servers: replicated_test.py",
    "no_leader": "with several servers: replicated_test.py",
    "outcome_unknown": "with several servers: replicated_test.py",
    "/servers 200.term": "with several servers: replicated_test.py",
    "/servers 200.etcd": "with several servers: replicated_test.py",
}
# What can happen to any request before it is looked at; the response `default` describes it.
ANY_REQUEST = {400: "invalid", 403: "foreign_origin", 408: "timeout", 413: "too_large", 429: "too_many_requests", 431: "headers_too_large"}


def faulty(change):
    """The faults of the file after a change of its text, which must change something."""
    with open(openapi_file.PATH, encoding="utf-8") as file:
        text = file.read()
    changed = change(text)
    assert changed != text
    return Description(changed).faults()


class FileTest(unittest.TestCase):
    def test_the_file_is_valid_and_its_examples_match_their_schemas(self):
        self.assertEqual(Description().faults(), [])

    def test_a_comma_that_nobody_quoted_is_found(self):
        quoted = '"The operation, if it is not the requested one"'
        self.assertTrue(faulty(lambda text: text.replace(quoted, quoted.strip('"'))))

    def test_a_key_twice_a_dangling_reference_and_a_wrong_example_are_found(self):
        with self.assertRaisesRegex(Exception, "'tags' occurs twice"):
            faulty(lambda text: text.replace("      tags: [locks]\n", "      tags: [locks]\n      tags: [locks]\n", 1))
        self.assertTrue(faulty(lambda text: text.replace('schemas/UnlockAnswer"', 'schemas/UnlockAnswr"')))
        self.assertTrue(faulty(lambda text: text.replace("state: queued, message", "state: quueued, message")))
        self.assertTrue(faulty(lambda text: text.replace("{cancelled: true}", "{cancelled: true, at: 1}")))

    def test_the_examples_of_http_api_md_are_as_described(self):
        with open(os.path.join(harness.HERE, "../../docs/http-api.md"), encoding="utf-8") as file:
            text = file.read()
        found = re.findall(r"^\$ curl -s \$turnstile(/\w+(?:/\w+)*) -d '([^']*)'\n(\{.*\})$", text, re.MULTILINE)
        self.assertGreater(len(found), 5)
        for path, request, answer in found:
            operation = Description().operations()[path, "POST"]
            wrong = json.loads(answer).get("code") == "invalid"
            pairs = [(answer, operation["responses"]["400" if wrong else "200"])]
            if not wrong and path != "/batch":  # that one shows a mistake, too
                pairs.append((request, operation["requestBody"]))
            for value, place in pairs:
                schema = closed(place["content"]["application/json"]["schema"])
                self.assertEqual(faults_of(json.loads(value), schema), [], value)

    def test_a_running_server_hands_out_this_very_file(self):
        server = harness.Server(store="memory").start()
        self.addCleanup(server.remove)
        with open(openapi_file.PATH, encoding="utf-8") as file:
            self.assertEqual(server.client().get("/openapi.yaml").text, file.read())


class AnswerTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.description = Description()
        cls.operations = cls.description.operations()
        cls.codes = set(cls.description.component("Code")["enum"])
        cls.exchanges = openapi_exchanges.record(cls.operations)

    def response(self, exchange):
        """What the file says about such an answer, and whether it says so by `default`."""
        responses = self.operations[exchange.path, exchange.method]["responses"]
        foreign = exchange.status == 403 and '"foreign_origin"' in exchange.text
        if str(exchange.status) in responses and not foreign:
            return responses[str(exchange.status)], False
        return responses.get("default"), True

    def codes_of(self, response):
        """The codes that a response's description names."""
        return set(re.findall(r"`(\w+)`", response["description"])) & self.codes

    def faults(self, exchange):
        if (exchange.path, exchange.method) not in self.operations:
            return self.faults_of_unknown(exchange)
        response, by_default = self.response(exchange)
        if response is None:
            return ["the status is not described"]
        if exchange.method == "HEAD":
            return ["HEAD has a body"] if exchange.text else []
        found = [f"there is no {name} header" for name, header in response.get("headers", {}).items()
                 if header.get("required") and name.lower() not in exchange.headers]
        kind = exchange.headers.get("content-type", "").split(";")[0]
        if kind not in response.get("content", {}):
            return found + [f"the content type {kind!r} is not described"]
        content = response["content"][kind]
        for body in self.bodies(exchange, kind):
            found += faults_of(body, closed(content.get("x-data-schema", content["schema"])))
            found += self.code_faults(exchange, response, by_default, body)
        if exchange.request is not None and exchange.status == 200:
            found += ["request: " + fault for fault in self.request_faults(exchange)]
        return found

    def faults_of_unknown(self, exchange):
        """404 and 405 have no operation."""
        known = [method for path, method in self.operations if path == exchange.path]
        code, status = ("method_not_allowed", 405) if known else ("unknown_path", 404)
        if known and exchange.method == "OPTIONS":  # described once, for all paths
            code, status = "", 204
        found = [] if exchange.status == status else [f"not described, and yet no {status}"]
        if status == 204:
            found += ["204 has a body"] if exchange.text else []
        elif exchange.method != "HEAD" and exchange.status == status:
            body = json.loads(exchange.text)
            found += faults_of(body, closed(self.description.component("Error")))
            found += [] if body.get("code") == code else [f"the code is not {code}"]
        if known and status == exchange.status:
            allowed = set(exchange.headers.get("allow", "").split(", "))
            found += [] if allowed == {*known, "OPTIONS"} else [f"Allow names {allowed}, described are {known}"]
        return found

    def code_faults(self, exchange, response, by_default, body):
        if not isinstance(body, dict) or exchange.status == 200:
            return []
        code = body.get("code")
        if by_default and ANY_REQUEST.get(exchange.status) != code:
            return [f"{exchange.status} {code} is not described"]
        return [] if code in self.codes_of(response) else [f"the description of the status does not name {code}"]

    def request_faults(self, exchange):
        """Fields that nobody reads are allowed, but not sent here: what is accepted must be described."""
        content = self.operations[exchange.path, exchange.method]["requestBody"]["content"]["application/json"]
        if exchange.path == "/batch":
            return []  # may hold anything: each request is judged for itself
        return faults_of(exchange.request, closed(content["schema"]))

    def bodies(self, exchange, kind):
        if kind == "text/event-stream":
            return exchange.events
        return [json.loads(exchange.text) if kind == "application/json" else exchange.text]

    def test_every_answer_is_as_described(self):
        problems = {f"{fault} -- {exchange}" for exchange in self.exchanges for fault in self.faults(exchange)}
        self.assertEqual(sorted(problems)[:20], [], f"{len(problems)} problems in {len(self.exchanges)} answers")

    def test_every_described_status_and_code_was_provoked(self):
        wanted, seen = set(), set()
        for (path, method), operation in self.operations.items():
            for status, response in operation["responses"].items():
                if status != "default":
                    wanted |= {(method, path, status, code) for code in self.codes_of(response) or {""}}
        wanted |= {("any", "any", str(status), code) for status, code in ANY_REQUEST.items()}
        for exchange in self.exchanges:
            if (exchange.path, exchange.method) not in self.operations:
                continue
            _, by_default = self.response(exchange)
            code = "" if exchange.status == 200 or exchange.method == "HEAD" else json.loads(exchange.text)["code"]
            place = ("any", "any") if by_default else (exchange.method, exchange.path)
            seen.add((*place, str(exchange.status), code))
        self.assertEqual(sorted(unit for unit in wanted - seen if unit[3] not in NOT_PROVOKED), [])
        self.assertEqual({unit[3] for unit in wanted if unit[3] in NOT_PROVOKED and unit in seen}, set(),
                         "it was provoked: it needs no excuse any more")

    def test_every_described_field_and_value_was_seen(self):
        wanted, seen = set(), set()
        for (path, method), operation in self.operations.items():
            for status, response in operation["responses"].items():
                for content in response.get("content", {}).values():
                    wanted |= described(content.get("x-data-schema", content["schema"]), f"{path} {status}")
        for exchange in self.exchanges:
            if exchange.method == "HEAD" or (exchange.path, exchange.method) not in self.operations:
                continue
            if self.faults(exchange):
                continue  # told by another test
            response, by_default = self.response(exchange)
            kind = exchange.headers["content-type"].split(";")[0]
            content = response["content"][kind]
            for body in self.bodies(exchange, kind):
                seen |= seen_in(body, content.get("x-data-schema", content["schema"]),
                                f"{exchange.path} {'default' if by_default else exchange.status}")
        # An error code is judged operation by operation, above.
        missing = {unit for unit in wanted - seen if unit[1] != "code" and ".".join(unit[:2]) not in NOT_PROVOKED}
        self.assertEqual(sorted(missing, key=str), [])


if __name__ == "__main__":
    harness.main()
