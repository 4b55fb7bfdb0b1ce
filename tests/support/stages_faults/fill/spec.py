from bundler.model.stage import StageSpec

SPEC = StageSpec(name="fill", title="fill it", inputs=("model",), produces="model", changes_model=True)
