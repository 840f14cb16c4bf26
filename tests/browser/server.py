"""`labelsieve review` as a process of its own: started, killed and started again, as on a bad day."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PATIENCE = 120.0


class Server:
    """The review of the run at `path`; the port stays the same over restarts."""

    def __init__(self, path: Path, reviewer: str = "anna", state: Path | None = None) -> None:
        """`state` is where the secret of the tokens is kept."""
        self.path, self.reviewer, self.port = path, reviewer, 0
        self.environment = os.environ | {"XDG_STATE_HOME": str(state or path.parent)}
        self.address = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> "Server":
        command = [sys.executable, "-m", "labelsieve", "review", str(self.path), "--no-browser", "--reviewer", self.reviewer]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if line.startswith("http://127.0.0.1:"):
                self.address = line.strip()
                self.port = int(self.address.split(":")[2].split("/")[0])
                return self
        raise AssertionError("the server did not come up: " + "".join(said))

    def kill(self) -> None:
        """SIGKILL: nothing is told, nothing is flushed."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()

    def log(self) -> list[dict[str, Any]]:
        """The lines written so far; the last may be in the middle of it, as nothing is locked here."""
        file = self.path / "decisions.jsonl"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def await_log(self, count: int) -> list[dict[str, Any]]:
        """The log, once it has so many lines."""
        until = time.monotonic() + PATIENCE
        while len(self.log()) < count and time.monotonic() < until:
            time.sleep(0.05)
        assert len(self.log()) == count, f"{len(self.log())} decisions, not {count}"
        return self.log()
