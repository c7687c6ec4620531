"""Numbers outside their range, at the real server: each is 400, and the error names the field and the range."""
import harness
from harness import ServerCase

TOP = 2**53 - 1
LANE = {"type": "pull", "resource_id": "r", "node_id": "n"}
# Path, field, the first and the last number that it takes.
RANGES = [("/lock", "wait_ms", 0, TOP), ("/lock", "lease_ms", 100, 86_400_000), ("/unlock", "token", 0, TOP),
          ("/renew", "token", 1, TOP), ("/renew", "lease_ms", 100, 86_400_000), ("/renew", "done", 0, TOP),
          ("/renew", "total", 0, TOP)]


class NumberTest(ServerCase):
    store = "memory"

    def send(self, path, field, text):
        """One request in which the field is that text, as it stands."""
        body = ",".join(f'"{name}":"{value}"' for name, value in LANE.items())
        token = '"token":7,' if path == "/renew" and field != "token" else ""
        return self.client.call("POST", path, f'{{{body},{token}"{field}":{text}}}')

    def test_S1_a_number_outside_its_range_is_400_and_the_range_is_named(self):
        for path, field, least, most in RANGES:
            for bad in least - 1, most + 1, -1, -2**63, 2**53, 2**63, 2**64 - 1:
                answer = self.send(path, field, bad)
                self.assert_refused(answer, 400, "invalid")
                self.assertEqual(answer["error"], f'"{field}" must be from {least} to {most}', (path, bad))
            for good in least, most:
                self.assertNotEqual(self.send(path, field, good).status, 400, (path, field, good))

    def test_S1_what_is_no_integer_is_400_and_the_field_is_named(self):
        for path, field, _, _ in RANGES:
            for bad in "1.0", "1e3", "-1.5", '"1000"', '""', "true", "[1000]", "{}":
                answer = self.send(path, field, bad)
                self.assert_refused(answer, 400, "invalid")
                self.assertEqual(answer["error"], f'"{field}" must be an integer, without quotes, fraction or exponent')

    def test_S1_an_integer_beyond_64_bits_is_400_in_any_field(self):
        for bad in 2**64, -2**63 - 1, 10**40:
            answer = self.send("/lock", "unknown", bad)
            self.assert_refused(answer, 400, "invalid")
            self.assertIn("an integer beyond 64 bits", answer["error"])

    def test_S1_the_limit_of_a_page_has_a_range(self):
        for bad in "0", "1001", "-1", str(2**53), str(2**64):
            self.assertEqual(self.client.get("/locks", limit=bad)["error"], '"limit" must be from 1 to 1000', bad)
        for bad in "1.5", "1e2", "ten", "0x10", " 5", "-":
            answer = self.client.get("/locks", limit=bad)
            self.assert_refused(answer, 400, "invalid")
            self.assertEqual(answer["error"], '"limit" must be an integer in decimal digits', bad)
        for good in "1", "1000", "0010", "":
            self.assertEqual(self.client.get("/locks", limit=good).status, 200, good)

    def test_S24_a_wait_far_above_the_longest_is_taken(self):
        self.hold("a")
        poll = self.poll("b", wait_ms=TOP)
        self.unlock("a", error="no")
        self.assertTrue(poll.answer()["acquired"])


if __name__ == "__main__":
    harness.main()
