from bundler.model.stage import StageSpec

SPEC = StageSpec(name="spy", title="spy on it", inputs=("model",), produces=None)
