from bundler.model.stage import StageSpec

SPEC = StageSpec(name="raises", title="raises it", inputs=("model",), produces="model", changes_model=True)
