"""The loader: checks and opens the bundle's model, and reports what it did.

Modules: `config` reads `runtime.json` and `permissions` holds it to what a bundle may ask for, `integrity` checks
files, `variants` chooses how to run, `opening` opens it from the shipped file or from the device's own copy
(`device_copy`, `keeping`, `device`), `sessions` makes and calls the runtime's sessions, `checks` looks at inputs,
`lifetime` ends models, `golden`, `metrics` and `proving` serve the self-test, `timing` and `throughput` the benchmark,
`cli` (with `arguments` and `heartbeat`) the command line, and `model` is what the package's own `Model` stands on.

Only bundles that need them have `bundle`, the base of `Bundle`, with `together`, which opens several models at once,
`batches`, for a model whose batch has one size, `streams`, for a model with
state, `plugins`, for providers from plugins, `prepared`, for what must be
generated on the device before a variant runs (`prewarming`, with `locking` and `drivers`, generates it), and `needs`,
which finds missing software of the device when the runtime or a variant could not be opened.
"""

import os
import sys

# An installer reads this from the metadata; a folder on the path has none.
if sys.version_info < (3, 11):  # noqa: UP036 (the message is for older versions)
    raise ImportError("this bundle requires Python 3.11 or newer; this is Python %d.%d" % sys.version_info[:2])  # noqa: UP031

# Set here, before any module of the loader loads the runtime's library, which from 1.29 on sends telemetry by default.
# A user who wants telemetry sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
