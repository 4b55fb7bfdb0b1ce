"""The canonical form of ONNX models: equal graphs become equal files.

ONNX Runtime's saved models may differ between runs in the order of nodes, in the names that its optimisers generate,
and in the order of initializers and attributes, which have no meaning. This package makes all of these unique.
"""
