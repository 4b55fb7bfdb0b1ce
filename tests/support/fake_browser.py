"""Stands in for a browser: opens the prover's page address and tells what the script of its test says.

Run as `python fake_browser.py SCRIPT FLAGS… URL`. The script is a JSON list of runs, one for each start of the
browser; a run is a list of messages to post, where a text is something to do: `hold`, `die`, `sleep`, `interrupt`,
`complain`.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    script, url = Path(sys.argv[1]), sys.argv[-1]
    log = script.with_suffix(".log")
    starts = log.read_text().splitlines() if log.exists() else []
    log.write_text("\n".join([*starts, json.dumps(sys.argv[2:])]) + "\n")
    run = json.loads(script.read_text())[len(starts)]
    held = None
    for step in run:
        if step == "hold":
            held = hold(url)
        elif step == "die":
            held = None  # The connection ends with its last reference.
            time.sleep(600)
        elif step == "sleep":
            time.sleep(600)
        elif step == "spawn":
            subprocess.Popen((sys.executable, "-c", "import time; time.sleep(600)", str(script)))
        elif step == "interrupt":
            os.kill(os.getpid(), signal.SIGRTMIN + 3)
        elif step == "complain":
            sys.stderr.write("dbus/object_proxy.cc: noise\nno usable sandbox\n")
            sys.exit(1)
        else:
            post(url, step)
    time.sleep(600)
    del held


def hold(url: str) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("GET", f"{parts.path.rpartition('/')[0]}/alive")
    return connection


def post(url: str, message: object) -> None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    body = json.dumps(message) if not isinstance(message, str) else message
    connection.request("POST", f"{parts.path.rpartition('/')[0]}/result", body, {"Origin": f"http://{parts.netloc}"})
    assert connection.getresponse().status == 204
    connection.close()


if __name__ == "__main__":
    main()
