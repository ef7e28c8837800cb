"""A copy of the checkout under build/mutate, its build, and objects and binaries of it with one file mutated.

A mutated file lies beside the copy, never in it, and its objects are linked before the libraries that have the
originals: nothing has to be restored, whatever ends the run.
"""
import collections
import contextlib
import dataclasses
import filecmp
import hashlib
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOME = ROOT / "build/mutate"
TREE, BUILD, WORK = HOME / "tree", HOME / "build", HOME / "work"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclasses.dataclass
class Run:
    how: str  # "" if all is well; else failed, crashed, time or memory
    output: str
    wall_s: float
    cpu_s: float


def run(command, folder, cpu_s, wall_s, memory_gb=16):
    def limit():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
        resource.setrlimit(resource.RLIMIT_AS, (int(memory_gb * 2 ** 30),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=limit)
    late = False
    try:
        output = process.communicate(timeout=wall_s)[0]
    except subprocess.TimeoutExpired:
        late = True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.poll() is None or late:
            output = process.communicate()[0]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(_how(process.returncode, output, late), output, time.monotonic() - began, cpu)


def _how(status, output, late):
    if status == 0 and not late:
        return ""
    if late or status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "time"
    if "bad_alloc" in output or "out of memory" in output:
        return "memory"
    return "crashed" if status < 0 else "failed"


def copy_tree():
    """Makes `tree` what the checkout is now, with changes that are not committed."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for name in names:
        target = TREE / name
        if not target.exists() or not filecmp.cmp(ROOT / name, target, shallow=False):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    for path in TREE.rglob("*"):
        if path.is_file() and path.relative_to(TREE).as_posix() not in names:
            path.unlink()


def configure():
    if (BUILD / "build.ninja").exists():  # the lists of sources may be others now
        subprocess.run(["ninja", "-C", BUILD, "build.ninja"], check=True, stdout=subprocess.DEVNULL)
    else:
        linker = ["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld"] if shutil.which("ld.lld") else []
        subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Mutate",
                        "-DCMAKE_UNITY_BUILD=OFF", "-DSTEPSIM_WERROR=OFF", "-DSTEPSIM_TESTS=ON",
                        "-DCMAKE_CXX_FLAGS=-O1 -DNDEBUG -w", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                        "--log-level=WARNING", *linker], check=True)


class Build:
    """What Ninja knows: the command of each object, what it reads, and what is linked to a binary."""

    def __init__(self):
        cache = (BUILD / "CMakeCache.txt").read_text()
        self.compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M).group(1)
        self.compiles, self.links, archives = {}, {}, {}
        for line in self._ninja("commands"):
            words = shlex.split(line)
            if "-c" in words and "-o" in words:
                self.compiles[words[words.index("-o") + 1]] = words[words.index(self.compiler):]
            elif "qc" in words:
                first = words.index("qc") + 1
                archives[words[first]] = [word for word in words[first:] if word.endswith(".o")]
            elif self.compiler in words and "-o" in words:
                link = words[words.index(self.compiler):]
                link = link[:link.index("&&")] if "&&" in link else link
                self.links[link[link.index("-o") + 1]] = link
        self.objects = {binary: {word for word in link if word.endswith(".o")}.union(
            *(archives.get(word, ()) for word in link)) for binary, link in self.links.items()}
        self.reads = {}  # of the objects that are built

    def make(self, binaries):
        subprocess.run(["ninja", "-C", BUILD, "--quiet", *binaries], check=True)
        self.reads = self._reads()

    def _ninja(self, tool):
        return subprocess.run(["ninja", "-C", BUILD, "-t", tool], check=True, capture_output=True,
                              text=True).stdout.splitlines()

    def _reads(self):
        """Returns the files of the tree that each object reads, also by a precompiled header."""
        reads, name = collections.defaultdict(set), ""
        for line in self._ninja("deps"):
            if line.startswith(" "):
                reads[name].add(os.path.normpath(BUILD / line.strip()))
            elif line:
                name = line.split(":")[0]
        full = {}
        for name, files in reads.items():
            headers = [os.path.relpath(file, BUILD) for file in files if file.endswith(".gch")]
            files = files.union(*(reads[header] for header in headers))
            full[name] = {os.path.relpath(file, TREE) for file in files if file.startswith(f"{TREE}/")}
        return full

    def objects_of(self, path, binary):
        return sorted(name for name in self.objects[binary] if path in self.reads.get(name, ()))

    def compile(self, name, path, out):
        """Compiles an object with the file `path` from WORK/overlay. Returns whether it compiled."""
        words, arguments = iter(self.compiles[name][1:]), []
        for word in words:
            if word in ("-MT", "-MF", "-o"):
                next(words)
            elif word == "-include":
                header = next(words)
                gch = os.path.relpath(f"{header}.gch", BUILD)
                arguments += [] if path in self.reads.get(gch, ()) else [word, header]
            elif word not in ("-MD", "-Winvalid-pch"):
                arguments.append(str(WORK / "overlay" / path) if word == f"{TREE}/{path}" else word)
        out.parent.mkdir(parents=True, exist_ok=True)
        return run([self.compiler, f"-I{WORK}/overlay", *arguments, "-o", str(out)], BUILD, 600, 600).how == ""

    def link(self, binary, mutated):
        """Links a binary of these objects, {name: file}, before all libraries. Returns its path, or None."""
        out = WORK / "bin" / os.path.basename(binary)
        out.parent.mkdir(parents=True, exist_ok=True)
        link = list(self.links[binary])
        link[link.index("-o") + 1] = str(out)
        first = next(i for i, word in enumerate(link) if word.endswith(".a"))
        extra = [str(file) for name, file in mutated.items() if name not in link]
        link = [str(mutated.get(word, word)) for word in link[:first]] + extra + link[first:]
        return out if run(link, BUILD, 300, 300).how == "" else None
