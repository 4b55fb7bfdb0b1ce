"""One canonical form for ONNX models, so that equal graphs are equal files.

ONNX Runtime's saved models may differ from run to run in the order of nodes, in the names that its optimisers make up,
and in the order of initializers and attributes. None of these mean anything. This package removes that freedom.
"""
