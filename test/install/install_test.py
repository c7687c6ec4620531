"""What a user of the library does: install it, build against it by find_package and by pkg-config, run.

Also what the shared libraries show to the outside: only the public names, so that ours never clash with a program's
own (or with another copy of a library that we use inside).
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXAMPLE = os.path.join(ROOT, "examples/cpp")
BUILD = os.environ["TURNSTILE_BUILD"]  # the build directory under test
CXX = os.environ.get("CXX", "c++")
FLAGS = os.environ.get("TURNSTILE_FLAGS", "")  # a sanitizer's, if the libraries have one
PUBLIC_CLASSES = "LeaseClock LockClient Hold Subscription RefCountStorage RefCountManager FakeServer".split()


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="turnstile-install-")
        cls.addClassCleanup(directory.cleanup)
        cls.work = directory.name
        cls.prefix = os.path.join(cls.work, "prefix")
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)
        config = cls.find("turnstile.pc")
        cls.libraries = os.path.dirname(os.path.dirname(config))
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(config),
                           "LD_LIBRARY_PATH": cls.libraries}

    @classmethod
    def find(cls, name):
        for directory, _, files in os.walk(cls.prefix):
            if name in files:
                return os.path.join(directory, name)
        raise AssertionError(f"{name} was not installed")

    def serve(self):
        """The address of an installed turnstiled that lives as long as the test."""
        server = subprocess.Popen(
            [self.find("turnstiled"), "--store", "memory", "--listen", "127.0.0.1:0", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        line = server.stdout.readline()
        self.assertTrue(line.startswith("listening on "), line)
        return "http://" + line.split()[-1]

    def runs_once(self, program, environment):
        url = self.serve()
        self.assertEqual(run(program, url, "layer", "node-a", env=environment), "ran\n")
        self.assertEqual(run(program, url, "layer", "node-b", env=environment), "skipped\n")

    def test_a_project_finds_it_with_cmake(self):
        build = os.path.join(self.work, "example")
        run("cmake", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={CXX}",
            f"-DCMAKE_CXX_FLAGS={FLAGS}")
        run("cmake", "--build", build)
        # CMake's own run path, no environment: found where it was installed.
        self.runs_once(os.path.join(build, "pull_once"), os.environ)
        run(os.path.join(build, "pull_once_test"))

    def test_a_makefile_finds_it_with_pkg_config(self):
        for package, program, main in [("turnstile", "pull_once", "main.cc"),
                                       ("turnstile-testing", "pull_once_test", "pull_once_test.cc")]:
            flags = run("pkg-config", "--cflags", "--libs", package, env=self.environment).split()
            run(CXX, "-std=c++23", *FLAGS.split(), "-o", os.path.join(self.work, program),
                os.path.join(EXAMPLE, main), os.path.join(EXAMPLE, "pull_once.cc"), *flags)
        self.runs_once(os.path.join(self.work, "pull_once"), self.environment)
        run(os.path.join(self.work, "pull_once_test"), env=self.environment)

    def test_every_header_can_be_included_alone(self):
        headers = os.path.dirname(self.find("lock_client.h"))
        for header in sorted(os.listdir(headers)):
            run(CXX, "-std=c++23", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++",
                "-I", os.path.dirname(headers), "-include", f"turnstile/{header}", os.devnull)

    def shown_by(self, library):
        names = run("nm", "-D", "--defined-only", "-C", os.path.join(self.libraries, library)).splitlines()
        return [line.split(None, 2)[2] for line in names]

    def test_the_libraries_show_only_public_names(self):
        member = "|".join(f"{name}::(~?{name}|[a-z]\\w*)" for name in PUBLIC_CLASSES)
        of_class = f"(vtable|typeinfo|typeinfo name) for turnstile::v1::({'|'.join(PUBLIC_CLASSES)})"
        function = r"turnstile::v1::(to_string|run_once|with_lock|settings_from_environment|make_memory_storage|open_\w+_storage)\("
        # The one door between the two libraries: a client on wires of the fake's.
        door = r"turnstile::v1::LockClient::Core::Core\("
        public = re.compile(rf"(turnstile::v1::({member})\b.*|{of_class}|({function}|{door}).*)")
        # LeaseClock::now() is what a program calls that gives lock() a deadline.
        for library, must in [("libturnstile.so", ("turnstile::v1::LockClient::lock(", "turnstile::v1::LeaseClock::now(")),
                              ("libturnstile_testing.so", ("turnstile::v1::FakeServer::client(",))]:
            names = self.shown_by(library)
            for function_shown in must:
                self.assertTrue(any(name.startswith(function_shown) for name in names), f"{function_shown} in {names}")
            self.assertEqual([name for name in names if not public.fullmatch(name)], [], library)

    def test_the_two_libraries_share_one_client(self):
        names = self.shown_by("libturnstile_testing.so")
        self.assertEqual([name for name in names if "FakeServer" not in name], [])
        self.assertIn("libturnstile.so.0", run("readelf", "-d", os.path.join(self.libraries, "libturnstile_testing.so")))
        self.assertIn("soname: [libturnstile.so.0]",
                      run("readelf", "-d", os.path.join(self.libraries, "libturnstile.so")))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
