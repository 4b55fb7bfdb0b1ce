"""What the user has in the environment stays there: nothing that is started sees more than it needs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from bundler.devices.browser.process import start_browser
from bundler.devices.local import LocalDevice, see_facts
from bundler.emitters.python.launching import Launch, start
from bundler.environments.registry import Environments
from bundler.environments.tools import run_tool
from bundler.execution.pool import WorkerPool
from bundler.model.plan import HOST
from bundler.pipeline.sources import _ask

SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "a-cloud-key",
    "GITHUB_TOKEN": "a-token",
    "DATABASE_URL": "postgres://a-password@host",
    "BUNDLER_CACHE_KEY": "what-signs-a-cache",
    "SSH_AUTH_SOCK": "/run/agent",
}
NEEDED = {
    "HTTPS_PROXY": "http://proxy.example:3128",
    "UV_INDEX_URL": "https://name:password@index.example/simple",
    "HF_TOKEN": "a-hub-token",
    "CUDA_VISIBLE_DEVICES": "1",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (SECRETS | NEEDED).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("BUNDLER_PASS_ENV", raising=False)


def seen_of(environ: dict[str, str]) -> set[str]:
    """Which of the variables of this test a process saw."""
    assert "PATH" in environ
    return (SECRETS | NEEDED).keys() & environ.keys()


def environ_of_worker(folder: Path) -> dict[str, str]:
    pool = WorkerPool(folder / "logs")
    try:
        with pool.lease(Environments(folder).describe(HOST, ())) as worker:
            data = ""
            while not data and worker.alive:  # Linux shows a program's variables only moments after it was started
                data = Path(f"/proc/{worker.pid}/environ").read_text()
    finally:
        pool.close()
    return dict(line.partition("=")[::2] for line in data.split("\0") if line)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="only Linux shows another's environment"
)


@needs_proc
def test_a_worker_sees_devices_and_no_keys(tmp_path: Path) -> None:
    environ = environ_of_worker(tmp_path)
    assert seen_of(environ) == {"CUDA_VISIBLE_DEVICES"}
    assert environ["ORT_DISABLE_TELEMETRY"] == "1"


@needs_proc
def test_a_user_names_what_his_own_code_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNDLER_PASS_ENV", "AWS_*, DATABASE_URL")
    seen = seen_of(environ_of_worker(tmp_path))
    assert seen == {"CUDA_VISIBLE_DEVICES", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL"}


DUMP = "import json, os; print(json.dumps({'bundle': {}, **os.environ}))"


def test_a_proof_sees_nothing_of_it() -> None:
    launch = Launch(device=LocalDevice(facts=see_facts()), command=(sys.executable, "-c", DUMP), environment={})
    assert seen_of(dict(start(launch, ()).report)) == set()


def test_what_fetches_packages_sees_proxies_and_indexes() -> None:
    environ = json.loads(run_tool((sys.executable, "-c", DUMP), "see", "python"))
    assert seen_of(environ) == {"HTTPS_PROXY", "UV_INDEX_URL"}


def test_what_fetches_models_sees_proxies_and_the_hubs_token() -> None:
    script = "import json, os; print(json.dumps({'text': json.dumps(dict(os.environ))}))"
    assert seen_of(json.loads(_ask([sys.executable, "-c", script]).text)) == {"HTTPS_PROXY", "HF_TOKEN"}


@pytest.mark.skipif(os.name != "posix", reason="the program that stands for a browser is a shell script")
def test_a_browser_sees_devices_and_no_keys(tmp_path: Path) -> None:
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{DUMP}"\n')
    script.chmod(0o755)
    with start_browser(script, "about:blank", "software") as running:
        while running.find_ending() is None:
            time.sleep(0.01)
        environ = json.loads(running.log.read_text())
    assert seen_of(environ) == {"CUDA_VISIBLE_DEVICES"}
