from bundler.model.stage import StageSpec

SPEC = StageSpec(name="keep", title="keep it", inputs=("model",), produces="model", changes_model=True)
