"""The loader: opens the bundle's model, checks it and says what it did. The same in every bundle, written by hand.

Modules: `config` reads `runtime.json` and `permissions` holds it to what a bundle may ask for, `integrity` checks
files, `variants` chooses how to run, `opening` opens it from the shipped file or from the device's own copy
(`device_copy`, `keeping`, `device`), `sessions` makes and calls the runtime's sessions, `checks` looks at inputs,
`golden`, `metrics` and `proving` serve the self-test, `timing` and `throughput` the benchmark, `cli` (with
`heartbeat`) the command line, and `model` is what the package's own `Model` stands on.

Only bundles that need them import `plugins`, for providers that stand beside the runtime, and `prepared`, for what must
be made on the device before a variant runs; `prewarming`, with `locking` and `drivers`, makes it. Only a variant that
did not open is asked, by `needs`, what of the device's own software is missing.
"""

import os
import sys

# An installer is told by the metadata; a folder on the path has none.
if sys.version_info < (3, 11):  # noqa: UP036 (it says so to those who have an older one)
    raise ImportError("this bundle needs Python 3.11 or newer; this is Python %d.%d" % sys.version_info[:2])  # noqa: UP031

# Here, because every module of the loader comes after it: the variable must be set before the first of them loads the
# runtime's library, which from 1.29 on reports usage unless told not to. A user who wants that sets it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
