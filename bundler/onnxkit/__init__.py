"""What stages share while they hold an ML tool: models' structure, sessions, values, the golden set's files.

Only `bundler.stages.*.run` and modules beside them import this room, so the parent process never loads it.
"""
