"""The built stepsim, as a person runs it: what the tests of its subcommands share.

    python3 schedule_test.py PATH-TO-STEPSIM

Good runs, every kind of bad input, files that can't be written, interrupts. Standard library only.
"""
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import unittest

STEPSIM = ""
SMALL = "llama3-8b-dgx-h100-8"
# Long enough to be interrupted on any machine.
LONG = ["run", "llama3-70b-dgx-h100-512", "--steps", "1000", "--fold", "off"]  # most of an hour
TIMEOUT_S = 600
INTERRUPTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


def stepsim(*arguments, **options):
    options = {"stdout": subprocess.PIPE, **options}
    return subprocess.run(
        [STEPSIM, *arguments], stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, **options
    )


def started(*arguments, ignored=()):
    """A process that gets signals as one that a person starts. A shell that runs the tests in the
    background would have them ignored."""
    def give_signals():
        for number in INTERRUPTS:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    return subprocess.Popen([STEPSIM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=give_signals)


def on_terminal(*arguments, environment=None):
    """What stepsim writes to a terminal that is both its standard output and error."""
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **(environment or {})}
    process = subprocess.Popen(
        [STEPSIM, *arguments], stdout=terminal, stderr=terminal, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    os.close(terminal)
    return process, controller


def read_all(controller):
    text = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:  # the other end was closed
            return text.decode()
        if not part:
            return text.decode()
        text += part


class StepsimTest(unittest.TestCase):
    def setUp(self):
        self.folder_owner = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder_owner.cleanup)
        self.folder = pathlib.Path(self.folder_owner.name)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def expect_refused(self, arguments, *messages):
        """Exit status 2, each message on standard error, nothing else anywhere."""
        before = self.files()
        result = stepsim(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        for message in messages:
            self.assertIn(message, result.stderr)
        self.assertEqual(self.files(), before)
        return result.stderr


def main():
    global STEPSIM
    STEPSIM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
