#!/usr/bin/env python3
"""The commands of README, the guides, ci.md and http-api.md are typed into a shell, against a real server, and say what is printed there.

A block of shell with prompts (`$ `) tells its output: it is compared, apart from numbers and times that differ each
time. A block without prompts must run through. Whatever is not run stands in LEFT_OUT, with the reason; containerd.md needs
a machine of its own (test/cluster/guide_test.py). Other than that
every flag that any document gives to one of our programs must exist.
"""
import functools
import http.server
import os
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import documents

sys.path.insert(0, os.path.join(documents.ROOT, "test/process"))
import harness  # noqa: E402

REPLAYED = ("README.md", "README.zh-CN.md", "docs/guide.md", "docs/zh/guide.md", "docs/ci.md", "docs/http-api.md")
# (document, how the block begins) -> why it is not run here.
LEFT_OUT = {
    ("README.md", "git clone"): "CI has done it: this is a clone, and ./dev has built it",
    ("README.zh-CN.md", "git clone"): "as in README.md",
    ("README.md", "./dev package"): "test/packaging/packages_test.py does it, on a machine that boots",
    ("README.zh-CN.md", "./dev package"): "as in README.md",
    ("README.md", "./dev demo"): "test/cluster/ starts the same nodes; the demo takes minutes",
    ("README.zh-CN.md", "./dev demo"): "as in README.md",
}
WITHIN = 240  # seconds for a block; only a broken one takes that long, also on a machine that hardly moves


def program(variable, name):
    return os.path.abspath(os.environ.get(variable) or os.path.join(documents.ROOT, "build/bin", name))


def same_each_time(text):
    """Without what differs from run to run: tokens, ids, times, durations."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"(\"token\":|^id: )\d+", r"\1NUMBER", text, flags=re.M)
    text = re.sub(r"(\"completed_ms_ago\":)\d+", r"\1NUMBER", text)
    text = re.sub(r"\b\d+(\.\d+)?(ms|s|m)\b", "DURATION", text)
    return [line.rstrip() for line in text.strip().splitlines()]


class Shell:
    """A bash that remembers what was typed before, in an empty directory, with our programs in its PATH."""

    def __init__(self, server):
        self.directory = tempfile.TemporaryDirectory(prefix="turnstile-docs-")
        os.symlink(".", os.path.join(self.directory.name, "turnstile"))  # the clone is where the shell is
        os.mkdir(os.path.join(self.directory.name, "build"))
        bin_directory = os.path.join(self.directory.name, "build/bin")
        os.mkdir(bin_directory)
        for variable, name in (("TURNSTILED", "turnstiled"), ("TURNSTILE_CLI", "turnstile"),
                               ("TURNSTILE_CONTENT", "turnstile-content")):
            os.symlink(program(variable, name), os.path.join(bin_directory, name))
        environment = harness.plain_environment(PATH=bin_directory + ":" + os.environ["PATH"], LC_ALL="C.UTF-8",
                                                TURNSTILE_SERVER=f"http://{server.host}:{server.port}", HOME=self.directory.name)
        self.address = f"{server.host}:{server.port}"
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=self.directory.name, env=environment)
        self.numbers = {}  # tokens and event ids: as the document has them -> as they are

    def run(self, text, wanted):
        """Output and exit code. Where the document tells no answer, one that is an error ends curl with an error."""
        mark = f"--end-{time.monotonic_ns()}--"
        text = text.replace("127.0.0.1:8086", self.address)
        if wanted is None:
            text = re.sub(r"\bcurl -s(?=N? )", "curl -sf", text)
        if wanted is None:  # a stream has no end
            text = re.sub(r"^(curl -sf?N .*)$", r"\1 --max-time 3 || [ $? = 28 ]", text, flags=re.M)
        else:
            text = re.sub(r"^(curl -sN .*)$", rf"head -n {len(wanted.strip().splitlines())} < <(\1 --max-time {WITHIN})", text, flags=re.M)
        text = re.sub(r"(\"token\":|Last-Event-ID: )(\d+)", lambda match: match[1] + self.numbers.get(match[2], match[2]), text)
        self.process.stdin.write(f"{text}\nprintf '\\n%s%s\\n' {mark} $?\n".encode())
        self.process.stdin.flush()
        out, end = b"", time.monotonic() + WITHIN
        while not re.search(mark.encode() + rb"\d+\n", out):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"not within {WITHIN} s:\n{text}\nso far:\n{out.decode(errors='replace')}")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                raise AssertionError(f"the shell has ended:\n{text}\n{out.decode(errors='replace')}")
            out += piece
        said, _, code = out.decode().partition(mark)
        numbers = re.compile(r"(?:\"token\":|^id: )(\d+)", re.M)
        self.numbers.update(zip(numbers.findall(wanted or ""), numbers.findall(said)))
        return said, int(code)

    def close(self):
        self.process.stdin.close()
        self.process.wait(WITHIN)
        self.process.stdout.close()
        self.directory.cleanup()


def steps(block):
    """(command, what it prints or None) for each command of a block with prompts; the whole block without."""
    if not re.search(r"^\$ ", block.text, re.M):
        return [(block.text, None)]
    found = []
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        lines = part.split("\n")
        size = 1
        while size < len(lines) and unfinished("\n".join(lines[:size])):
            size += 1
        found.append(("\n".join(lines[:size]), "\n".join(lines[size:])))
    return found


def unfinished(command):
    return command.endswith("\\") or command.count("'") % 2 == 1


class ReplayTest(unittest.TestCase):
    def replay(self, document):
        server = harness.Server(store="memory").start()
        shell = Shell(server)
        self.addCleanup(server.stop)
        self.addCleanup(shell.close)
        all_said = ""
        for block in documents.blocks(document):
            if block.language not in ("sh", "console") or left_out(block):
                continue
            for command, wanted in steps(block):
                said, code = shell.run(command, wanted)
                all_said += said
                where = f"{document}:{block.line}: {command}\nsaid: {said}"
                self.assertEqual(code, 0, where)
                if wanted is not None:
                    self.assertEqual(same_each_time(said), same_each_time(wanted), where)
        return all_said

    def test_what_is_left_out_is_there(self):
        """A reason for something that no document has any more is to go."""
        begins = {(block.document, key[1]) for key in LEFT_OUT for block in documents.blocks(key[0])
                  if block.text.startswith(key[1])}
        self.assertEqual(sorted(set(LEFT_OUT) - begins), [])


def left_out(block):
    return any(block.document == document and block.text.startswith(begin) for document, begin in LEFT_OUT)


def add_replays():
    for document in REPLAYED:
        def test(self, document=document):
            said = self.replay(document)
            if document.startswith("README"):
                self.assertEqual(said.count("the report, made by"), 1, said)
        setattr(ReplayTest, "test_replay_of_" + re.sub(r"\W+", "_", document), test)


class ExampleTest(unittest.TestCase):
    def test_pull_once_py_pulls_on_one_of_two_nodes(self):
        server = harness.Server(store="memory").start()
        self.addCleanup(server.stop)
        command = [sys.executable, os.path.join(documents.ROOT, "examples/pull_once.py")]
        nodes = [subprocess.Popen([*command, node, "sha256:1f", f"http://{server.host}:{server.port}"],
                                  stdout=subprocess.PIPE, text=True) for node in ("node-a", "node-b")]
        said = "".join(node.communicate(timeout=WITHIN)[0] for node in nodes)
        self.assertEqual([node.returncode for node in nodes], [0, 0])
        self.assertEqual((said.count("'released': True"), said.count("'skip': True")), (1, 1), said)


    def test_pull_once_py_follows_to_the_server_that_leads(self):
        server = harness.Server(store="memory").start()
        self.addCleanup(server.stop)

        class Standby(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(307)
                self.send_header("Location", f"http://{server.host}:{server.port}{self.path}")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        standby = http.server.HTTPServer(("127.0.0.1", 0), Standby)
        self.addCleanup(standby.server_close)
        threading.Thread(target=standby.serve_forever, daemon=True).start()
        self.addCleanup(standby.shutdown)
        done = subprocess.run([sys.executable, os.path.join(documents.ROOT, "examples/pull_once.py"), "node-a", "sha256:2e",
                               f"http://127.0.0.1:{standby.server_port}"], capture_output=True, text=True, timeout=WITHIN, check=False)
        self.assertIn("'released': True", done.stdout, done.stderr)


class SameTest(unittest.TestCase):
    def test_the_chinese_guide_has_the_commands_of_the_english_one(self):
        commands = [[block.text for block in documents.blocks(name) if block.language == "sh"]
                    for name in ("docs/guide.md", "docs/zh/guide.md")]
        self.assertEqual(*commands)


@functools.cache
def help_of(name, *subcommand):
    variable = {"turnstiled": "TURNSTILED", "turnstile": "TURNSTILE_CLI", "turnstile-content": "TURNSTILE_CONTENT"}[name]
    done = subprocess.run([program(variable, name), *subcommand, "--help"], capture_output=True, text=True,
                          env=harness.plain_environment(), timeout=WITHIN, check=False)
    return done.stdout + done.stderr if done.returncode == 0 else ""


def documented_defaults(flag):
    """The second cell of the flag's row in settings.md, where it is a value and not a sentence."""
    for _, line in documents.prose("docs/settings.md"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) > 3 and cells[1].startswith("`--") and flag in flags_in(cells[1]):
            value = cells[2].strip("`").replace(",", "")
            if re.fullmatch(r"`.+`|[\d,]+|off|on", cells[2]):
                yield value


def flags_in(text):
    return set(re.findall(r"--[a-z][a-z0-9-]+", text))


class FlagsTest(unittest.TestCase):
    def test_flags_that_documents_give_to_our_programs_exist(self):
        wrong = []
        for document in documents.markdown_files():
            if document.startswith(("docs/decisions", "CHANGELOG")):
                continue  # these tell what was
            for block in documents.blocks(document):
                if block.language not in ("sh", "console", ""):
                    continue
                for name, words in documents.program_calls(block.text):
                    wrong += [f"{document}:{block.line}: {name} {flag}" for flag in self.unknown(name, words)]
        self.assertEqual(wrong, [])

    @staticmethod
    def unknown(name, words):
        own = words[:words.index("--")] if "--" in words else words
        known = flags_in(help_of(name)) | {"--help", "--version"}
        for word in own:
            if re.fullmatch(r"[a-z][a-z-]+", word) and help_of(name, word):
                known |= flags_in(help_of(name, word))
                break
        return sorted(flag for flag in flags_in(" ".join(word for word in own if word.startswith("--"))) if flag not in known)

    def test_settings_md_and_help_have_the_same_flags(self):
        documented = flags_in(" ".join(line for _, line in documents.prose("docs/settings.md") if line.startswith("| `--")))
        self.assertEqual(sorted(flags_in(help_of("turnstiled")) - documented - {"--help", "--version"}), [],
                         "not in the tables of docs/settings.md")

    def test_defaults_in_settings_md_are_those_of_help(self):
        wrong = []
        for flag, default in re.findall(r"^  (--[a-z-]+) .*\(([^()]*)\)$", help_of("turnstiled"), re.M):
            for cell in documented_defaults(flag):
                if {"off": "false", "on": "true"}.get(cell, cell) != default:
                    wrong.append(f"{flag}: {cell} in settings.md, {default} in --help")
        self.assertEqual(wrong, [])

    def test_a_flag_that_there_is_not_is_found(self):
        self.assertEqual(self.unknown("turnstile", ["exec", "pull", "x", "--wiat", "10m", "--", "cmd", "--any"]), ["--wiat"])


add_replays()

if __name__ == "__main__":

    unittest.main()
