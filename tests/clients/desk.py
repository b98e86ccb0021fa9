"""A throw-away desk: its own HOME and data directory, a free port, stopped and removed at the end."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

BINARY = os.environ["DESKMATE"]
PASSPHRASE = "correct horse battery"


class Desk:
    def __init__(self, settings=None, account=None):
        """A desk with these settings in its `deskmate.yaml`, if there are any, under this account, if that is another one."""
        self.settings = settings
        self.binary = [BINARY]
        if account is not None:
            self.binary = ["setpriv", "--reuid", str(account), "--regid", str(account), "--clear-groups", "--", BINARY]
        self.account = account

    def __enter__(self):
        self.root = Path(tempfile.mkdtemp(prefix="deskmate-clients-"))
        self.home = self.root / "desk"
        if self.settings is not None:
            self.home.mkdir(mode=0o700)
            (self.home / "deskmate.yaml").write_text(self.settings)
        if self.account is not None:
            os.chown(self.root, self.account, self.account)
        self.log = (self.root / "log").open("wb")
        command = [*self.binary, "up", "--home", str(self.home), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, env=self.env(), stdout=self.log, stderr=self.log)
        try:
            self.url = self._wait_for_url()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def _wait_for_url(self):
        for _ in range(200):
            if self.process.poll() is not None:
                raise RuntimeError(f"the desk did not start: {(self.root / 'log').read_text()}")
            try:
                url = json.loads((self.home / "desk.lock").read_text()).get("url")
            except (OSError, ValueError):
                url = None
            if url:
                return url
            time.sleep(0.05)
        raise RuntimeError("the desk did not say where it listens")

    def _wait_for_link(self):
        """The code of the link, which the desk prints a moment after it says where it listens."""
        for _ in range(200):
            found = re.search(r"/claim\?code=(\S+)\s", (self.root / "log").read_text())
            if found:
                return found[1]
            time.sleep(0.05)
        raise RuntimeError(f"the desk printed no link: {(self.root / 'log').read_text()}")

    def env(self, **more):
        """An environment in which nothing of the person who runs the tests is left."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root), **more}

    def cli(self, *args, stdin="", token=None, check=True):
        """Runs the command line with this desk and answers what it printed."""
        return self.run(*args, "--home", str(self.home), stdin=stdin, token=token, check=check)

    def run(self, *args, stdin="", token=None, check=True):
        """Runs the command line and answers what it printed."""
        env = self.env(DESKMATE_TOKEN=token) if token else self.env()
        command = [*self.binary, *args]
        done = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise RuntimeError(f"{args} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def call(self, operation, agent, **fields):
        return json.loads(self.cli("call", operation, "--agent", agent, "--json", "--input", json.dumps(fields)))

    def claim(self, name="Ada"):
        """Makes somebody the owner, with the link that the desk printed when it started."""
        body = json.dumps({"code": self._wait_for_link(), "name": name, "passphrase": PASSPHRASE}).encode()
        request = urllib.request.Request(f"{self.url}/api/desk_claim", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def register(self, agent):
        """Registers an agent, which closes the desk, and answers its token."""
        printed = self.cli("agent", "add", agent, "--json", "--passphrase-stdin", stdin=PASSPHRASE + "\n")
        return json.loads(printed)["token"]


def check(condition, what):
    """Says what was checked, or stops."""
    if not condition:
        raise AssertionError(what)
    print(f"  ok  {what}", flush=True)
