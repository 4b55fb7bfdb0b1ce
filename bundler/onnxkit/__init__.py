"""Code that stages share when an ML library is loaded: model structure, sessions, values, the golden set's files.

Only `bundler.stages.*.run` and modules beside them import this package, so the parent process never loads it.
"""
