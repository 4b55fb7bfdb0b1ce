"""The typed Python API; the command line calls nothing else.

    from bundler.api.build import build
    from bundler.api.requests import BuildRequest
    from bundler.api.workshop import open_workshop

Its modules are imported one by one, so that a command pays only for what it uses.
"""
