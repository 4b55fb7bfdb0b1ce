from bundler.model.stage import StageSpec

SPEC = StageSpec(name="patient", title="patient it", inputs=("model",), produces="model", changes_model=True)
