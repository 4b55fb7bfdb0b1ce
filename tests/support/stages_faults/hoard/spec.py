from bundler.model.stage import StageSpec

SPEC = StageSpec(name="hoard", title="hoard it", inputs=("model",), produces=None)
