"""Modules of JavaScript, read and run by Node.js itself in a bare context: what they export, and what they touched."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

_HOST = """
import { createInterface } from "node:readline";
import { createContext, SourceTextModule } from "node:vm";

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await evaluate(JSON.parse(line)).catch((error) => ({ error: String(error) }))));
}

async function evaluate(source) {
  const sandbox = { URL };
  const before = Object.getOwnPropertyNames(Object.prototype).join();
  const module = new SourceTextModule(source, {
    context: createContext(sandbox),
    initializeImportMeta: (meta) => { meta.url = "file:///bundle/module.js"; },
  });
  await module.link((name) => { throw new Error(`it imports ${name}`); });
  await module.evaluate({ timeout: 5000 });
  if (Object.keys(sandbox).join() !== "URL") throw new Error(`it made ${Object.keys(sandbox)} global`);
  if (Object.getOwnPropertyNames(Object.prototype).join() !== before) throw new Error("it changed the prototype");
  return { exports: { ...module.namespace } };
}
"""


class ModuleHost:
    """A Node.js that evaluates one module after the other."""

    def __init__(self, lines: IO[str], answers: IO[str]) -> None:
        self._lines = lines
        self._answers = answers

    def evaluate(self, source: str) -> Any:
        """The exports of a module without imports, as JSON has them."""
        self._lines.write(json.dumps(source) + "\n")
        self._lines.flush()
        answer = json.loads(self._answers.readline())
        assert "error" not in answer, answer["error"]
        return answer["exports"]


@contextmanager
def module_host(node: str) -> Iterator[ModuleHost]:
    """A host, for as long as the block runs."""
    command = [node, "--experimental-vm-modules", "--no-warnings", "--input-type=module", "--eval", _HOST]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield ModuleHost(process.stdin, process.stdout)
        process.stdin.close()
