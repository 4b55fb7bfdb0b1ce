"""The loader: opens the bundle's model, checks it and says what it did. The same in every bundle, written by hand.

Modules: `config` reads `runtime.json`, `integrity` checks files, `variants` chooses how to run, `sessions` opens and
calls the runtime, `checks` looks at inputs, `golden` and `metrics` serve the self-test, `timing` the benchmark, `cli`
the command line, and `model` is what the package's own `Model` stands on.
"""
