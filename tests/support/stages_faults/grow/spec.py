from bundler.model.stage import StageSpec

SPEC = StageSpec(name="grow", title="grow it", inputs=("model",), produces="model", changes_model=True)
