from bundler.model.stage import StageSpec

SPEC = StageSpec(name="crash", title="crash it", inputs=("model",), produces="model", changes_model=True)
