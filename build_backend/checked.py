"""scikit-build-core's build backend, after a look at the Python that asks.

The metadata say which Pythons bundler is for, and installers read them last: they first look for the requirements, find
none for an old Python, and tell that instead.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (it says so to those who have an older one)
    sys.exit("bundler requires Python 3.11 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

from scikit_build_core.build import *  # noqa: F403 (the whole of it)
