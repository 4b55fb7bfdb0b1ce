"""One module for each simplifier, named like the package that it calls, each with `simplify(source, target, data)`.

Each runs in the locked environment with its name, which contains none of the others.
"""
