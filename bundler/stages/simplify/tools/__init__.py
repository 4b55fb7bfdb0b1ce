"""One module a simplifier, named as the package that it calls, each with `simplify(source, target, data)`.

Each runs in the locked environment of its name, which holds none of the others.
"""
