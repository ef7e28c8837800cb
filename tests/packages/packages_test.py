#!/usr/bin/env python3
"""Makes every package and uses it as its user does: packages_test.py SOURCE-FOLDER BUILD-FOLDER.

The wheel in a clean virtual environment, the tarball beside the C and C++ runtime alone (as root in a
chroot), the Debian packages unpacked where their dependencies are, the library from another CMake
project. Nothing is installed into the system.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import hardened

SOURCE = pathlib.Path()
BUILD = pathlib.Path()
PYTHON = "/usr/bin/python3"
SMALL = "llama3-8b-dgx-h100-8"
RUNTIME = r"(linux-vdso|ld-linux|libc|libm|libdl|libpthread|libstdc\+\+|libgcc_s)[-.]"


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, timeout=1200,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def make(script, folder):
    call(SOURCE / "scripts" / script, folder, cwd=SOURCE,
         env={**os.environ, "BUILD": os.path.relpath(BUILD, SOURCE)})
    return folder


def step_time(text):
    return json.loads(text)["step_time_s"]


def libraries(file):
    """The shared libraries of a file: name and where it was found."""
    return re.findall(r"^\s+(\S+) => (.*) \(0x", call("ldd", file), re.M)


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        # A space in the name must not matter.
        cls.folder = pathlib.Path(cls.temporary.name, "some folder")
        cls.folder.mkdir()
        cls.expected = step_time(call(BUILD / "stepsim", "run", SMALL, "--json", "-"))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def only_brings(self, file, own):
        """All libraries of a file but the runtime's lie in a folder of the package."""
        for name, place in libraries(file):
            if not re.match(RUNTIME, name):
                self.assertTrue(pathlib.Path(place).resolve().is_relative_to(own.resolve()),
                                f"{name} is {place}")

    def is_hardened(self, file, rpath=""):
        self.assertEqual(hardened.problems_of(file, rpath), [])

    def test_the_wheel_in_a_clean_environment(self):
        make("make_wheel.sh", self.folder / "wheel")
        wheel, = (self.folder / "wheel").glob("stepsim-*.whl")
        home = self.folder / "venv"
        call(PYTHON, "-m", "venv", home)
        python = home / "bin/python"
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        call(python, "-m", "pip", "install", "--quiet", "--no-index", wheel, env=clean)
        code = (f"import stepsim; print(stepsim.run('{SMALL}').to_json()); "
                "assert 'llama3-70b' in stepsim.catalog('models')")
        self.assertEqual(step_time(call(python, "-c", code, env=clean, cwd="/")), self.expected)
        package = next((home / "lib").glob("python3*/site-packages/stepsim"))
        module = next(package.glob("_core.*.so"))
        self.only_brings(module, package)
        self.is_hardened(module, "$ORIGIN/lib")
        self.assertTrue((package / "py.typed").exists())
        self.assertTrue(list((package / "lib").glob("*.copyright")))
        call(python, "-m", "pip", "uninstall", "--quiet", "--yes", "stepsim", env=clean)
        self.assertFalse(package.exists())

    def test_the_tarball_and_the_debian_packages(self):
        made = make("make_packages.sh", self.folder / "packages")
        self.tarball(next(made.glob("stepsim-*.tar.gz")))
        self.debian_packages({path.name.split("_")[0]: path for path in made.glob("*.deb")})

    def tarball(self, archive):
        place = self.folder / "unpacked"
        place.mkdir()
        call("tar", "xf", archive, "-C", place)
        unpacked, = place.iterdir()
        program = unpacked / "bin/stepsim"
        self.only_brings(program, unpacked)
        self.is_hardened(program, "$ORIGIN/../lib/stepsim")
        self.assertEqual(step_time(call(program, "run", SMALL, "--json", "-", env={}, cwd="/")),
                         self.expected)
        if os.geteuid() != 0:
            return
        # A system that has the runtime and nothing else, not even a shell.
        root = self.folder / "root"
        needed = [re.sub(r"\s.*", "", line.strip()) for line in call("ldd", program).splitlines()]
        files = [place for name, place in libraries(program) if re.match(RUNTIME, name)]
        files += [name for name in needed if name.startswith("/")]
        for file in files:
            copy = root / file.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        shutil.copytree(unpacked, root / "opt/stepsim")
        (root / "tmp").mkdir()
        inside = "/opt/stepsim/bin/stepsim"
        # The loader asks /proc where the program lies; there is none here.
        here = {**os.environ, "LD_ORIGIN_PATH": "/opt/stepsim/bin"}
        self.assertEqual(step_time(call("chroot", root, inside, "run", SMALL, "--json", "-",
                                        env=here)),
                         self.expected)
        call("chroot", root, inside, "run", SMALL, "--trace", "/tmp/t.json.gz", env=here)
        self.assertTrue((root / "tmp/t.json.gz").stat().st_size > 1000)

    def debian_packages(self, packages):
        self.assertLessEqual({"python3-stepsim", "stepsim", "stepsim-dev"}, set(packages))
        system = self.folder / "system"
        installed = call("dpkg-query", "--show", "--showformat", "${Package}\n${Provides}\n")
        known = set(packages) | set(re.split(r"[\s,]+", re.sub(r"\(.*?\)", "", installed)))
        for name, path in packages.items():
            call("dpkg-deb", "--extract", path, system)
            for dependency in call("dpkg-deb", "--field", path, "Depends").split(","):
                choices = [re.sub(r"[\s(:].*", "", one.strip()) for one in dependency.split("|")]
                self.assertTrue(set(choices) & known, f"{name} depends on {dependency}")
        program = system / "usr/bin/stepsim"
        self.is_hardened(program)
        self.is_hardened(next((system / "usr/lib/python3").rglob("_core.*.so")))
        self.assertEqual(step_time(call(program, "run", SMALL, "--json", "-")), self.expected)
        share = system / "usr/share"
        pages = {page.name for page in (share / "man/man1").iterdir()}
        self.assertIn("stepsim.1.gz", pages)
        self.assertIn("stepsim-run.1.gz", pages)
        script = (share / "bash-completion/completions/stepsim").read_text()
        self.assertIn("complete -o filenames -F _stepsim stepsim", script)
        self.assertTrue((share / "zsh/site-functions/_stepsim").exists())
        for name in packages:
            self.assertTrue((share / "doc" / name / "copyright").exists(), name)
        for third in ("THIRD_PARTY.md", "nlohmann-json3-dev-copyright", "libtomlplusplus-dev-copyright"):
            self.assertTrue((share / "doc/stepsim" / third).exists(), third)
        path = {"PYTHONPATH": str(system / "usr/lib/python3/dist-packages")}
        code = f"import stepsim; print(stepsim.run('{SMALL}').to_json())"
        self.assertEqual(step_time(call(PYTHON, "-c", code, env={**os.environ, **path}, cwd="/")),
                         self.expected)

    def test_another_project_links_the_library(self):
        prefix = self.folder / "prefix"
        call("cmake", "--build", BUILD, "--target", "stepsim_manual", "stepsim_library")
        call("cmake", "--install", BUILD, "--prefix", prefix)
        self.assertEqual(step_time(call(prefix / "bin/stepsim", "run", SMALL, "--json", "-")),
                         self.expected)
        build = self.folder / "example"
        call("cmake", "-S", SOURCE / "examples/link", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
             "-DCMAKE_BUILD_TYPE=Debug")
        call("cmake", "--build", build)
        self.assertRegex(call(build / "largest_microbatch"), r"^micro-batch \d: \d+\.\d{3} s\n$")


if __name__ == "__main__":
    SOURCE, BUILD = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    unittest.main()
