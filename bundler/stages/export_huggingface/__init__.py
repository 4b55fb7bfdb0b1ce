"""Export a folder with a PyTorch model, as the Transformers library saves it, to ONNX through Optimum."""
