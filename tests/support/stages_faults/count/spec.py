from bundler.model.stage import StageSpec

SPEC = StageSpec(name="count", title="count it", inputs=("model",), produces=None)
