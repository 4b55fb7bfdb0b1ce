"""The typed Python API; the command line calls nothing else.

    from bundler.pipeline.build import build
    from bundler.pipeline.requests import BuildRequest
    from bundler.pipeline.workshop import open_workshop

Its modules are imported one by one, so that a command pays only for what it uses.
"""
