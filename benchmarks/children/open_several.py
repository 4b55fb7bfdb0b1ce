"""Open the components of a bundle together and each alone, in turns within one process, and print it all as JSON.

open_several.py FOLDER/PACKAGE TURNS

Of each turn, by name (`together`, or that of the component): seconds and CPU seconds of opening.
"""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

place, turns = sys.argv[1:]
sys.path.insert(0, str(Path(place).parent))
package = importlib.import_module(Path(place).name)
models = {model.pins.component: model for model in package.Bundle.models}
opens: dict[str, Callable[[], Any]] = {"together": package.Bundle.open, **models}
found: dict[str, list[tuple[float, float]]] = {name: [] for name in opens}

for turn in range(int(turns) + 1):
    for name, open_ in list(opens.items())[:: 1 if turn % 2 else -1]:
        began, busy = perf_counter(), process_time()
        opened = open_()
        taken = perf_counter() - began, process_time() - busy
        opened.close()
        del opened
        if turn:  # the first one loads the runtime's library, and makes what is kept on the device
            found[name].append(taken)
print(json.dumps(found))
