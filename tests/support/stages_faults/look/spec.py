from bundler.model.stage import StageSpec

SPEC = StageSpec(name="look", title="look it", inputs=("model",), produces=None)
