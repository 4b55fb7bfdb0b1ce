from bundler.model.stage import StageSpec

SPEC = StageSpec(name="hang", title="hang it", inputs=("model",), produces="model", changes_model=True, time_limit=1.0)
