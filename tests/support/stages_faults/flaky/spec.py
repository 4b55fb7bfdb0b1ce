from bundler.model.stage import StageSpec

SPEC = StageSpec(name="flaky", title="flaky it", inputs=("model",), produces="model", changes_model=True, optional=True)
